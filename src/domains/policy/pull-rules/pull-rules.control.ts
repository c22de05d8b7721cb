import type { Handlers } from '#app.ts'
import {
  type PullRuleException as ExceptionMessage,
  PullRule_CountFrom,
  PullRule_CountFromSchema,
  PullRule_Mode,
  PullRule_ModeSchema,
  type PullRule as PullRuleMessage,
  PullRulesService,
} from '#gen/pinfold/control/registry/v1/pull_rules_pb.ts'
import { invalid, noKnownValue } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { exceptionOrders, ruleOrders } from '#lib/lists/orders.ts'
import { readPage } from '#lib/lists/paging.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import {
  aPullRule,
  aPullRuleException,
  type Mode,
  type PullRule,
  type PullRuleException,
  type PullRuleText,
} from './pull-rules.model.ts'
import * as service from './pull-rules.service.ts'

export const pullRules: Handlers<typeof PullRulesService> = {
  async createPullRule(call, { parent, pullRule }) {
    return toMessage(await service.createRule(call, parent, fromMessage(pullRule)))
  },

  async updatePullRule(call, { pullRule, updateMask }) {
    const patch = { paths: updateMask?.paths ?? [], value: fromMessage(pullRule) }
    return toMessage(await service.updateRule(call, pullRule?.uid ?? '', patch))
  },

  async deletePullRule(call, { uid }) {
    await service.deleteRule(call, uid)
    return { $typeName: 'google.protobuf.Empty' }
  },

  async getPullRule(call, { uid }) {
    return toMessage(await service.getRule(call, uid))
  },

  async listPullRules(call, request) {
    const page = readPage(call, request, { fields: ruleOrders, defaultOrder: 'uid' }, [request.scopeUid])
    const listed = await service.listRules(call, page, request.scopeUid)
    return listResponse('pinfold.control.registry.v1.ListPullRulesResponse', 'pullRules', listed, toMessage, request)
  },

  async createPullRuleException(call, { parent, pullRuleException }) {
    if (!pullRuleException) throw invalid({ field: 'pull_rule_exception', description: 'is required' })
    const { digest, reason, expireTime } = pullRuleException
    const input = { digest, reason, expireTime: expireTime ? toIso(expireTime) : '' }
    return exceptionMessage(await service.createException(call, parent, input))
  },

  async revokePullRuleException(call, { uid }) {
    return exceptionMessage(await service.revokeException(call, uid))
  },

  async getPullRuleException(call, { uid }) {
    return exceptionMessage(await service.getException(call, uid))
  },

  async listPullRuleExceptions(call, request) {
    const { scopeUid: scope, includeEnded: withEnded } = request
    const page = readPage(call, request, { fields: exceptionOrders, defaultOrder: 'uid' }, [scope, withEnded])
    const listed = await service.listExceptions(call, page, { scope, withEnded })
    const response = 'pinfold.control.registry.v1.ListPullRuleExceptionsResponse'
    return listResponse(response, 'pullRuleExceptions', listed, exceptionMessage, request)
  },
}

export const pullRuleEvents: readonly EventBody[] = [
  eventBody(PullRulesService.method.createPullRule, aPullRule, toMessage),
  eventBody(PullRulesService.method.updatePullRule, aPullRule, toMessage),
  deletionBody(PullRulesService.method.deletePullRule),
  eventBody(PullRulesService.method.createPullRuleException, aPullRuleException, exceptionMessage),
  eventBody(PullRulesService.method.revokePullRuleException, aPullRuleException, exceptionMessage),
]

const modes = ['SERVE_OLDER', 'DENY', 'OBSERVE'] as const satisfies readonly Mode[]
const counted = { tag: PullRule_CountFrom.TAG, repo: PullRule_CountFrom.REPO } as const

function fromMessage(message: PullRuleMessage | undefined): PullRuleText {
  if (!message) throw invalid({ field: 'pull_rule', description: 'is required' })
  const { name, tags, exceptTags, identities, belowGroup, minAge, hold, countFrom, mode } = message
  if (!Object.values<number>(PullRule_CountFrom).includes(countFrom)) {
    throw invalid({ field: 'count_from', description: noKnownValue(PullRule_CountFromSchema) })
  }
  return {
    ...{ name, tags, exceptTags, identities, belowGroup, minAge, hold },
    countFrom: countFrom === PullRule_CountFrom.REPO ? 'repo' : 'tag',
    mode: modeOf(mode),
  }
}

function modeOf(mode: number): Mode | '' {
  if (mode === PullRule_Mode.MODE_UNSPECIFIED) return ''
  const found = modes.find((name) => PullRule_Mode[name] === mode)
  if (!found) throw invalid({ field: 'mode', description: noKnownValue(PullRule_ModeSchema) })
  return found
}

function toMessage(rule: PullRule): PullRuleMessage {
  const { name, tags, exceptTags, identities, belowGroup, minAge, hold } = service.textOf(rule)
  return {
    $typeName: 'pinfold.control.registry.v1.PullRule',
    uid: rule.uid,
    ...{ name, tags, exceptTags, identities, belowGroup, minAge, hold },
    countFrom: counted[rule.age.countFrom],
    mode: PullRule_Mode[rule.mode],
    createTime: timestamp(rule.createTime),
    updateTime: timestamp(rule.updateTime),
  }
}

function exceptionMessage(exception: PullRuleException): ExceptionMessage {
  const { uid, digest, reason, expireTime, actor, revokeTime, revokedBy, createTime } = exception
  return {
    $typeName: 'pinfold.control.registry.v1.PullRuleException',
    ...{ uid, digest, reason, actor, revokedBy },
    expireTime: timestamp(expireTime),
    ...(revokeTime === '' ? {} : { revokeTime: timestamp(revokeTime) }),
    createTime: timestamp(createTime),
    updateTime: timestamp(revokeTime || createTime),
  }
}
