import type { Handlers } from '#app.ts'
import {
  endingHandlers,
  exceptionFields,
  exceptionFrom,
  ruleHandlers,
  ruleTimes,
} from '#domains/rules/rules.control.ts'
import type { DigestException } from '#domains/rules/rules.model.ts'
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
import {
  type Mode,
  type PullRule,
  type PullRuleText,
  toPullRuleExceptionResource,
  toPullRuleResource,
} from './pull-rules.model.ts'
import { pullRuleExceptionKind, pullRuleKind, textOf } from './pull-rules.service.ts'

const rules = ruleHandlers(pullRuleKind, {
  ...{ field: 'pull_rule', fromMessage, toMessage },
  response: 'pinfold.control.registry.v1.ListPullRulesResponse',
  member: 'pullRules',
})
const exceptions = endingHandlers(pullRuleExceptionKind, {
  ...{ field: 'pull_rule_exception', fromMessage: exceptionFrom, toMessage: exceptionMessage },
  response: 'pinfold.control.registry.v1.ListPullRuleExceptionsResponse',
  member: 'pullRuleExceptions',
})

export const pullRules: Handlers<typeof PullRulesService> = {
  createPullRule: (call, { parent, pullRule }) => rules.create(call, parent, pullRule),
  updatePullRule: (call, { pullRule, updateMask }) => rules.update(call, pullRule, updateMask),
  deletePullRule: rules.delete,
  getPullRule: rules.get,
  listPullRules: rules.list,
  createPullRuleException: (call, { parent, pullRuleException }) => exceptions.create(call, parent, pullRuleException),
  revokePullRuleException: exceptions.end,
  getPullRuleException: exceptions.get,
  listPullRuleExceptions: exceptions.list,
}

export const pullRuleEvents: readonly EventBody[] = [
  eventBody(PullRulesService.method.createPullRule, toPullRuleResource, toMessage),
  eventBody(PullRulesService.method.updatePullRule, toPullRuleResource, toMessage),
  deletionBody(PullRulesService.method.deletePullRule),
  eventBody(PullRulesService.method.createPullRuleException, toPullRuleExceptionResource, exceptionMessage),
  eventBody(PullRulesService.method.revokePullRuleException, toPullRuleExceptionResource, exceptionMessage),
]

const modes = ['SERVE_OLDER', 'DENY', 'OBSERVE'] as const satisfies readonly Mode[]
const counted = { tag: PullRule_CountFrom.TAG, repo: PullRule_CountFrom.REPO } as const

function fromMessage(message: PullRuleMessage): PullRuleText {
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
  const { name, tags, exceptTags, identities, belowGroup, minAge, hold } = textOf(rule)
  return {
    $typeName: 'pinfold.control.registry.v1.PullRule',
    uid: rule.uid,
    ...{ name, tags, exceptTags, identities, belowGroup, minAge, hold },
    countFrom: counted[rule.age.countFrom],
    mode: PullRule_Mode[rule.mode],
    ...ruleTimes(rule),
  }
}

function exceptionMessage(exception: DigestException): ExceptionMessage {
  return { $typeName: 'pinfold.control.registry.v1.PullRuleException', ...exceptionFields(exception) }
}
