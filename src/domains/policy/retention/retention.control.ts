import type { Handlers } from '#app.ts'
import {
  type BrokenPromise as BrokenMessage,
  type Hold as HoldMessage,
  Promise_Reason,
  type Promise as PromiseMessage,
  type QuarantinedDigest,
  RetentionRule_Mode,
  type RetentionRule as RetentionRuleMessage,
  RetentionService,
  type TagRule as TagRuleMessage,
} from '#gen/pinfold/control/registry/v1/retention_pb.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { changedOrders, createdOrders } from '#lib/lists/orders.ts'
import { readPage } from '#lib/lists/paging.ts'
import { timestamp } from '#lib/timestamp.ts'
import { breakPromises, getPromise } from './breaking.service.ts'
import {
  aBrokenPromise,
  aHold,
  aQuarantine,
  aRetentionRule,
  aTagRule,
  type BrokenPromise,
  type Kept,
  type Mark,
  noEnd,
  type Retention,
  type RetentionMode,
  type RetentionRule,
  type TagLaw,
  type TagRule,
} from './retention.model.ts'
import * as service from './retention.service.ts'

const rules = { fields: changedOrders, defaultOrder: 'uid' }
const markRules = { fields: createdOrders, defaultOrder: 'uid' }

export const retention: Handlers<typeof RetentionService> = {
  async createRetentionRule(call, { parent, retentionRule }) {
    return ruleMessage(await service.createRetentionRule(call, parent, retentionFrom(retentionRule)))
  },

  async updateRetentionRule(call, { retentionRule, updateMask }) {
    const patch = { paths: updateMask?.paths ?? [], value: retentionFrom(retentionRule) }
    return ruleMessage(await service.updateRetentionRule(call, retentionRule?.uid ?? '', patch))
  },

  async deleteRetentionRule(call, { uid }) {
    await service.deleteRetentionRule(call, uid)
    return { $typeName: 'google.protobuf.Empty' }
  },

  async getRetentionRule(call, { uid }) {
    return ruleMessage(await service.getRetentionRule(call, uid))
  },

  async listRetentionRules(call, request) {
    const page = readPage(call, request, rules, [request.scopeUid])
    const listed = await service.listRetentionRules(call, page, request.scopeUid)
    return listResponse(
      'pinfold.control.registry.v1.ListRetentionRulesResponse',
      'retentionRules',
      listed,
      ruleMessage,
      request,
    )
  },

  async createTagRule(call, { parent, tagRule }) {
    return tagRuleMessage(await service.createTagRule(call, parent, tagLawFrom(tagRule)))
  },

  async updateTagRule(call, { tagRule, updateMask }) {
    const patch = { paths: updateMask?.paths ?? [], value: tagLawFrom(tagRule) }
    return tagRuleMessage(await service.updateTagRule(call, tagRule?.uid ?? '', patch))
  },

  async deleteTagRule(call, { uid }) {
    await service.deleteTagRule(call, uid)
    return { $typeName: 'google.protobuf.Empty' }
  },

  async getTagRule(call, { uid }) {
    return tagRuleMessage(await service.getTagRule(call, uid))
  },

  async listTagRules(call, request) {
    const page = readPage(call, request, rules, [request.scopeUid])
    const listed = await service.listTagRules(call, page, request.scopeUid)
    return listResponse('pinfold.control.registry.v1.ListTagRulesResponse', 'tagRules', listed, tagRuleMessage, request)
  },

  async createHold(call, { parent, hold }) {
    if (!hold) throw invalid({ field: 'hold', description: 'is required' })
    const { digest, tags, reason } = hold
    return holdMessage(await service.createHold(call, parent, { digest, tags, reason }))
  },

  async releaseHold(call, { uid }) {
    return holdMessage(await service.releaseHold(call, uid))
  },

  async getHold(call, { uid }) {
    return holdMessage(await service.getHold(call, uid))
  },

  async listHolds(call, request) {
    const which = { scope: request.scopeUid, withEnded: request.includeEnded }
    const listed = await service.listHolds(call, readPage(call, request, markRules, which), which)
    return listResponse('pinfold.control.registry.v1.ListHoldsResponse', 'holds', listed, holdMessage, request)
  },

  async quarantine(call, { parent, digest, reason }) {
    return quarantineMessage(await service.createQuarantine(call, parent, { digest, reason }))
  },

  async releaseQuarantine(call, { uid }) {
    return quarantineMessage(await service.releaseQuarantine(call, uid))
  },

  async getQuarantined(call, { uid }) {
    return quarantineMessage(await service.getQuarantined(call, uid))
  },

  async listQuarantined(call, request) {
    const which = { scope: request.scopeUid, withEnded: request.includeEnded }
    const listed = await service.listQuarantined(call, readPage(call, request, markRules, which), which)
    return listResponse(
      'pinfold.control.registry.v1.ListQuarantinedResponse',
      'quarantined',
      listed,
      quarantineMessage,
      request,
    )
  },

  async breakPromises(call, { repoUid, digest, reason }) {
    return brokenMessage(await breakPromises(call, { repo: repoUid, digest, reason }))
  },

  async getPromise(call, { repoUid, digest }) {
    return promiseMessage(repoUid, digest, await getPromise(call, repoUid, digest))
  },
}

const { method } = RetentionService
export const retentionEvents: readonly EventBody[] = [
  eventBody(method.createRetentionRule, aRetentionRule, ruleMessage),
  eventBody(method.updateRetentionRule, aRetentionRule, ruleMessage),
  deletionBody(method.deleteRetentionRule),
  eventBody(method.createTagRule, aTagRule, tagRuleMessage),
  eventBody(method.updateTagRule, aTagRule, tagRuleMessage),
  deletionBody(method.deleteTagRule),
  eventBody(method.createHold, aHold, holdMessage),
  eventBody(method.releaseHold, aHold, holdMessage),
  eventBody(method.quarantine, aQuarantine, quarantineMessage),
  eventBody(method.releaseQuarantine, aQuarantine, quarantineMessage),
  eventBody(method.breakPromises, aBrokenPromise, brokenMessage),
]

const modes = ['OFF', 'DRY_RUN', 'ENFORCE'] as const satisfies readonly RetentionMode[]

function retentionFrom(message: RetentionRuleMessage | undefined): Retention {
  if (!message) throw invalid({ field: 'retention_rule', description: 'is required' })
  const { name, tags, exceptTags, keepDaysAfter, keepLast, forever, untaggedDays } = message
  return { name, tags, exceptTags, keepDaysAfter, keepLast, forever, untaggedDays, mode: modeOf(message.mode) }
}

function modeOf(mode: number): RetentionMode | '' {
  if (mode === RetentionRule_Mode.MODE_UNSPECIFIED) return ''
  const found = modes.find((name) => RetentionRule_Mode[name] === mode)
  if (!found) throw invalid({ field: 'mode', description: 'is not a known value of Mode' })
  return found
}

function tagLawFrom(message: TagRuleMessage | undefined): TagLaw {
  if (!message) throw invalid({ field: 'tag_rule', description: 'is required' })
  const { name, tags, exceptTags, immutable, movers, keepListed } = message
  return { name, tags, exceptTags, immutable, movers, keepListed }
}

function ruleMessage({ uid, says, createTime, updateTime }: RetentionRule): RetentionRuleMessage {
  return {
    $typeName: 'pinfold.control.registry.v1.RetentionRule',
    uid,
    ...says,
    mode: RetentionRule_Mode[says.mode || 'OFF'],
    createTime: timestamp(createTime),
    updateTime: timestamp(updateTime),
  }
}

function tagRuleMessage({ uid, says, createTime, updateTime }: TagRule): TagRuleMessage {
  const times = { createTime: timestamp(createTime), updateTime: timestamp(updateTime) }
  const { keepListed = false } = says
  return { $typeName: 'pinfold.control.registry.v1.TagRule', uid, ...says, keepListed, ...times }
}

function markFields({ uid, digest, reason, actor, releaseTime, releasedBy, createTime }: Mark) {
  return {
    ...{ uid, digest, reason, actor, releasedBy },
    ...(releaseTime === '' ? {} : { releaseTime: timestamp(releaseTime) }),
    createTime: timestamp(createTime),
    updateTime: timestamp(releaseTime || createTime),
  }
}

function holdMessage(mark: Mark): HoldMessage {
  return { $typeName: 'pinfold.control.registry.v1.Hold', ...markFields(mark), tags: mark.tags }
}

function quarantineMessage(mark: Mark): QuarantinedDigest {
  return { $typeName: 'pinfold.control.registry.v1.QuarantinedDigest', ...markFields(mark) }
}

/** Of what is kept for good, and of what nothing keeps, there is no time. */
const endOf = (until: string) => (until === '' || until === noEnd ? {} : { until: timestamp(until) })

function brokenMessage({ repo, digest, reason, until, rule }: BrokenPromise): BrokenMessage {
  const $typeName = 'pinfold.control.registry.v1.BrokenPromise'
  return { $typeName, repoUid: repo, digest, reason, rule, ...endOf(until) }
}

function promiseMessage(
  repoUid: string,
  digest: string,
  { kept, tags }: { kept: Kept | undefined; tags: readonly string[] },
): PromiseMessage {
  return {
    $typeName: 'pinfold.control.registry.v1.Promise',
    ...{ repoUid, digest, rule: kept?.rule ?? '', tags: [...tags], keptWith: kept?.with ?? '' },
    reason: kept ? Promise_Reason[kept.by] : Promise_Reason.REASON_UNSPECIFIED,
    ...endOf(kept?.until ?? ''),
  }
}
