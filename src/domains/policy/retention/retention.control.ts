import type { Handlers } from '#app.ts'
import { endingHandlers, endingTimes, ruleHandlers, ruleTimes } from '#domains/rules/rules.control.ts'
import {
  type BrokenPromise as BrokenMessage,
  type Hold as HoldMessage,
  Promise_Reason,
  type Promise as PromiseMessage,
  type QuarantinedDigest,
  type QuarantineRequest,
  RetentionRule_Mode,
  type RetentionRule as RetentionRuleMessage,
  RetentionService,
  type TagRule as TagRuleMessage,
} from '#gen/pinfold/control/registry/v1/retention_pb.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { changedOrders, createdOrders } from '#lib/lists/orders.ts'
import { timestamp } from '#lib/timestamp.ts'
import { breakPromises, getPromise } from './protected-deletions.service.ts'
import {
  type BrokenPromise,
  type Kept,
  type Mark,
  type NewMark,
  noEnd,
  type Retention,
  type RetentionMode,
  type RetentionRule,
  type TagRule,
  type TagRuleSettings,
  toBrokenPromiseResource,
  toHoldResource,
  toQuarantineResource,
  toRetentionRuleResource,
  toTagRuleResource,
} from './retention.model.ts'
import { holdKind, quarantineKind, retentionRuleKind, tagRuleKind } from './retention.service.ts'

const rules = ruleHandlers(retentionRuleKind, {
  ...{ field: 'retention_rule', fromMessage: retentionFrom, toMessage: ruleMessage, orders: changedOrders },
  response: 'pinfold.control.registry.v1.ListRetentionRulesResponse',
  member: 'retentionRules',
})
const tagRules = ruleHandlers(tagRuleKind, {
  ...{ field: 'tag_rule', fromMessage: tagRuleSettingsFrom, toMessage: tagRuleMessage, orders: changedOrders },
  response: 'pinfold.control.registry.v1.ListTagRulesResponse',
  member: 'tagRules',
})
const holds = endingHandlers(holdKind, {
  ...{ field: 'hold', toMessage: holdMessage, orders: createdOrders },
  fromMessage: ({ digest, tags, reason }: HoldMessage): NewMark => ({ digest, tags, reason }),
  response: 'pinfold.control.registry.v1.ListHoldsResponse',
  member: 'holds',
})
const quarantines = endingHandlers(quarantineKind, {
  ...{ field: 'quarantine', toMessage: quarantineMessage, orders: createdOrders },
  fromMessage: ({ digest, reason }: QuarantineRequest): NewMark => ({ digest, tags: [], reason }),
  response: 'pinfold.control.registry.v1.ListQuarantinedResponse',
  member: 'quarantined',
})

export const retention: Handlers<typeof RetentionService> = {
  createRetentionRule: (call, { parent, retentionRule }) => rules.create(call, parent, retentionRule),
  updateRetentionRule: (call, { retentionRule, updateMask }) => rules.update(call, retentionRule, updateMask),
  deleteRetentionRule: rules.delete,
  getRetentionRule: rules.get,
  listRetentionRules: rules.list,

  createTagRule: (call, { parent, tagRule }) => tagRules.create(call, parent, tagRule),
  updateTagRule: (call, { tagRule, updateMask }) => tagRules.update(call, tagRule, updateMask),
  deleteTagRule: tagRules.delete,
  getTagRule: tagRules.get,
  listTagRules: tagRules.list,

  createHold: (call, { parent, hold }) => holds.create(call, parent, hold),
  releaseHold: holds.end,
  getHold: holds.get,
  listHolds: holds.list,

  quarantine: (call, request) => quarantines.create(call, request.parent, request),
  releaseQuarantine: quarantines.end,
  getQuarantined: quarantines.get,
  listQuarantined: quarantines.list,

  async breakPromises(call, { repoUid, digest, reason }) {
    return brokenMessage(await breakPromises(call, { repo: repoUid, digest, reason }))
  },

  async getPromise(call, { repoUid, digest }) {
    return protectionMessage(repoUid, digest, await getPromise(call, repoUid, digest))
  },
}

const { method } = RetentionService
export const retentionEvents: readonly EventBody[] = [
  eventBody(method.createRetentionRule, toRetentionRuleResource, ruleMessage),
  eventBody(method.updateRetentionRule, toRetentionRuleResource, ruleMessage),
  deletionBody(method.deleteRetentionRule),
  eventBody(method.createTagRule, toTagRuleResource, tagRuleMessage),
  eventBody(method.updateTagRule, toTagRuleResource, tagRuleMessage),
  deletionBody(method.deleteTagRule),
  eventBody(method.createHold, toHoldResource, holdMessage),
  eventBody(method.releaseHold, toHoldResource, holdMessage),
  eventBody(method.quarantine, toQuarantineResource, quarantineMessage),
  eventBody(method.releaseQuarantine, toQuarantineResource, quarantineMessage),
  eventBody(method.breakPromises, toBrokenPromiseResource, brokenMessage),
]

const modes = ['OFF', 'DRY_RUN', 'ENFORCE'] as const satisfies readonly RetentionMode[]

function retentionFrom(message: RetentionRuleMessage): Retention {
  const { name, tags, exceptTags, keepDaysAfter, keepLast, forever, untaggedDays } = message
  return { name, tags, exceptTags, keepDaysAfter, keepLast, forever, untaggedDays, mode: modeOf(message.mode) }
}

function modeOf(mode: number): RetentionMode | '' {
  if (mode === RetentionRule_Mode.MODE_UNSPECIFIED) return ''
  const found = modes.find((name) => RetentionRule_Mode[name] === mode)
  if (!found) throw invalid({ field: 'mode', description: 'is not a known value of Mode' })
  return found
}

function tagRuleSettingsFrom({
  name,
  tags,
  exceptTags,
  immutable,
  movers,
  keepListed,
}: TagRuleMessage): TagRuleSettings {
  return { name, tags, exceptTags, immutable, movers, keepListed }
}

function ruleMessage(rule: RetentionRule): RetentionRuleMessage {
  const { uid, says } = rule
  const mode = RetentionRule_Mode[says.mode || 'OFF']
  return { $typeName: 'pinfold.control.registry.v1.RetentionRule', uid, ...says, mode, ...ruleTimes(rule) }
}

function tagRuleMessage(rule: TagRule): TagRuleMessage {
  const { uid, says } = rule
  const { keepListed = false } = says
  return { $typeName: 'pinfold.control.registry.v1.TagRule', uid, ...says, keepListed, ...ruleTimes(rule) }
}

function markFields({ uid, digest, reason, actor, endTime, endActor, createTime }: Mark) {
  return {
    ...{ uid, digest, reason, actor, releasedBy: endActor },
    ...(endTime === '' ? {} : { releaseTime: timestamp(endTime) }),
    ...endingTimes({ createTime, endTime }),
  }
}

function holdMessage(mark: Mark): HoldMessage {
  return { $typeName: 'pinfold.control.registry.v1.Hold', ...markFields(mark), tags: mark.tags }
}

function quarantineMessage(mark: Mark): QuarantinedDigest {
  return { $typeName: 'pinfold.control.registry.v1.QuarantinedDigest', ...markFields(mark) }
}

/** Members for the end of a protection. `until` is missing if the content is protected forever, or not at all. */
const endOf = (until: string) => (until === '' || until === noEnd ? {} : { until: timestamp(until) })

function brokenMessage({ repo, digest, reason, until, rule }: BrokenPromise): BrokenMessage {
  const $typeName = 'pinfold.control.registry.v1.BrokenPromise'
  return { $typeName, repoUid: repo, digest, reason, rule, ...endOf(until) }
}

function protectionMessage(
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
