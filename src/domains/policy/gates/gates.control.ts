import type { Handlers } from '#app.ts'
import {
  endingHandlers,
  exceptionFields,
  exceptionFrom,
  ruleHandlers,
  ruleTimes,
} from '#domains/rules/rules.control.ts'
import type { DigestException } from '#domains/rules/rules.model.ts'
import { imageFields } from '#domains/scanning/images/images.model.ts'
import {
  type GateException as ExceptionMessage,
  Gate_Mode,
  Gate_ModeSchema,
  type Gate as GateMessage,
  GatesService,
  type VulnerabilityRule as VulnerabilityMessage,
  VulnerabilityRule_Severity,
  VulnerabilityRule_SeveritySchema,
  VulnerabilityRule_Unknown,
  VulnerabilityRule_UnknownSchema,
  VulnerabilityRule_UnknownSeverity,
  VulnerabilityRule_UnknownSeveritySchema,
} from '#gen/pinfold/control/scanning/v1/gates_pb.ts'
import { required } from '#lib/contract/messages.ts'
import { invalid, noKnownValue } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { readPage } from '#lib/lists/paging.ts'
import {
  type Gate,
  type GateRule,
  type GateText,
  type Mode,
  type Severity,
  toGateExceptionResource,
  toGateResource,
  type UnknownSeverity,
  type VulnerabilityRule,
  type VulnerabilityText,
} from './gates.model.ts'
import { gateExceptionKind, gateKind } from './gates.service.ts'
import { previewGate } from './preview-gate.service.ts'
import { previewSeverities } from './preview-severities.service.ts'

/** Most images that one response of a preview checks. */
const mostPreviewed = 50

const rules = ruleHandlers(gateKind, {
  ...{ field: 'gate', fromMessage, toMessage },
  response: 'pinfold.control.scanning.v1.ListGatesResponse',
  member: 'gates',
})
const exceptions = endingHandlers(gateExceptionKind, {
  ...{ field: 'gate_exception', fromMessage: exceptionFrom, toMessage: exceptionMessage },
  response: 'pinfold.control.scanning.v1.ListGateExceptionsResponse',
  member: 'gateExceptions',
})

export const gates: Handlers<typeof GatesService> = {
  createGate: (call, { parent, gate }) => rules.create(call, parent, gate),
  updateGate: (call, { gate, updateMask }) => rules.update(call, gate, updateMask),
  deleteGate: rules.delete,
  getGate: rules.get,
  listGates: rules.list,

  async previewGateSeverities(call, { uid, after }) {
    const rules = { fields: imageFields, defaultOrder: 'list' }
    const page = readPage(call, { pageSize: mostPreviewed, pageToken: after, orderBy: '', skip: 0 }, rules, [uid])
    const { images, next } = await previewSeverities(call, page, uid)
    return {
      $typeName: 'pinfold.control.scanning.v1.PreviewGateSeveritiesResponse',
      images: images.map((image) => ({ $typeName: 'pinfold.control.scanning.v1.ChangedImage', ...image })),
      next,
    }
  },

  async previewGate(call, { parent, gate }) {
    const preview = await previewGate(call, parent, fromMessage(required(gate, 'gate')))
    return {
      $typeName: 'pinfold.control.scanning.v1.PreviewGateResponse',
      checkedCount: preview.checked,
      deniedCount: preview.denied,
      waitingCount: preview.waiting,
      images: preview.images.map((image) => ({ $typeName: 'pinfold.control.scanning.v1.PreviewedImage', ...image })),
      complete: preview.complete,
    }
  },

  createGateException: (call, { parent, gateException }) => exceptions.create(call, parent, gateException),
  revokeGateException: exceptions.end,
  getGateException: exceptions.get,
  listGateExceptions: exceptions.list,
}

export const gateEvents: readonly EventBody[] = [
  eventBody(GatesService.method.createGate, toGateResource, toMessage),
  eventBody(GatesService.method.updateGate, toGateResource, toMessage),
  deletionBody(GatesService.method.deleteGate),
  eventBody(GatesService.method.createGateException, toGateExceptionResource, exceptionMessage),
  eventBody(GatesService.method.revokeGateException, toGateExceptionResource, exceptionMessage),
]

const modes = ['OFF', 'DRY_RUN', 'ENFORCE'] as const satisfies readonly Mode[]
const unknownSeverities = ['COUNTED_AS_HIGH', 'NOT_COUNTED'] as const satisfies readonly UnknownSeverity[]
const severities = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const satisfies readonly Severity[]

function fromMessage({ name, mode, rule, exemptPulledDays }: GateMessage): GateText {
  return {
    ...{ name, exemptPulledDays },
    mode:
      mode === Gate_Mode.MODE_UNSPECIFIED
        ? 'DRY_RUN'
        : named(modes, Gate_Mode, mode, { field: 'mode', desc: Gate_ModeSchema }),
    vulnerabilities: rule.case === 'vulnerabilities' ? fromVulnerabilities(rule.value) : undefined,
    endOfLife: rule.case === 'endOfLife' ? {} : undefined,
    cooldown: rule.case === 'cooldown' ? { minAgeDays: rule.value.minAgeDays } : undefined,
    supportWindow: rule.case === 'supportWindow' ? { minMonthsLeft: rule.value.minMonthsLeft } : undefined,
  }
}

function fromVulnerabilities(message: VulnerabilityMessage): VulnerabilityText {
  const { leastSeverity, onlyFixable, onlyExploited, afterDays, unknown, unknownSeverity } = message
  const any = VulnerabilityRule_Severity.SEVERITY_UNSPECIFIED
  if (!Object.values<number>(VulnerabilityRule_Unknown).includes(unknown)) {
    throw notKnown('vulnerabilities.unknown', VulnerabilityRule_UnknownSchema)
  }
  const least = { field: 'vulnerabilities.least_severity', desc: VulnerabilityRule_SeveritySchema }
  return {
    leastSeverity: leastSeverity === any ? '' : named(severities, VulnerabilityRule_Severity, leastSeverity, least),
    ...{ onlyFixable, onlyExploited, afterDays },
    unknown: unknown === VulnerabilityRule_Unknown.DENY ? 'DENY' : 'PASS',
    unknownSeverity:
      unknownSeverity === VulnerabilityRule_UnknownSeverity.UNKNOWN_SEVERITY_UNSPECIFIED
        ? undefined
        : named(unknownSeverities, VulnerabilityRule_UnknownSeverity, unknownSeverity, {
            ...{ field: 'vulnerabilities.unknown_severity', desc: VulnerabilityRule_UnknownSeveritySchema },
          }),
  }
}

type Known = Parameters<typeof noKnownValue>[0]

/** Name of an enum number. Throws INVALID_ARGUMENT if the number has no name. */
function named<N extends string>(
  names: readonly N[],
  numbers: Readonly<Record<N, number>>,
  number: number,
  { field, desc }: { field: string; desc: Known },
): N {
  const name = names.find((one) => numbers[one] === number)
  if (!name) throw notKnown(field, desc)
  return name
}

const notKnown = (field: string, desc: Known) => invalid({ field, description: noKnownValue(desc) })

function toMessage(gate: Gate): GateMessage {
  const { uid, name, mode, exemptPulledDays } = gate
  return {
    $typeName: 'pinfold.control.scanning.v1.Gate',
    ...{ uid, name, exemptPulledDays },
    mode: Gate_Mode[mode],
    rule: ruleMessage(gate.rule),
    ...ruleTimes(gate),
  }
}

function ruleMessage(rule: GateRule): GateMessage['rule'] {
  if (rule.kind === 'vulnerabilities') return { case: rule.kind, value: vulnerabilityMessage(rule) }
  if (rule.kind === 'endOfLife') {
    return { case: rule.kind, value: { $typeName: 'pinfold.control.scanning.v1.EndOfLifeRule' } }
  }
  if (rule.kind === 'cooldown') {
    const { minAgeDays } = rule
    return { case: rule.kind, value: { $typeName: 'pinfold.control.scanning.v1.CooldownRule', minAgeDays } }
  }
  const { minMonthsLeft } = rule
  return { case: rule.kind, value: { $typeName: 'pinfold.control.scanning.v1.SupportWindowRule', minMonthsLeft } }
}

function vulnerabilityMessage(rule: VulnerabilityRule): VulnerabilityMessage {
  const { leastSeverity, onlyFixable, onlyExploited, afterDays, unknown, unknownSeverity } = rule
  return {
    $typeName: 'pinfold.control.scanning.v1.VulnerabilityRule',
    leastSeverity: VulnerabilityRule_Severity[leastSeverity || 'SEVERITY_UNSPECIFIED'],
    ...{ onlyFixable, onlyExploited, afterDays },
    unknown: VulnerabilityRule_Unknown[unknown],
    unknownSeverity: VulnerabilityRule_UnknownSeverity[unknownSeverity],
  }
}

function exceptionMessage(exception: DigestException): ExceptionMessage {
  return { $typeName: 'pinfold.control.scanning.v1.GateException', ...exceptionFields(exception) }
}
