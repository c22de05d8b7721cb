import type { Fields } from '#lib/fields.ts'

/** One vulnerability in one component of one artifact. Its uid begins with the uid of its group. */
export type Advisory = {
  uid: string
  advisoryId: string
  /** Empty if the advisory has no legacy ID. */
  legacyAdvisoryId: string
  /** The package that the artifact is built from. Filters can use this field, but answers do not contain it. */
  origin: string
  author: string
  artifactName: string
  artifactType: string
  artifactArchitecture: string
  componentName: string
  componentType: string
  componentLocation: string
  aliases: string[]
  /** Sorted by time. */
  events: AdvisoryEvent[]
  createTime: string
  updateTime: string
}

/** One event in the history of an advisory. Its uid begins with the uid of the advisory. */
export type AdvisoryEvent = {
  uid: string
  createTime: string
  author: string
  reviewer: string
  /** Number of the enum ReviewState in the API. */
  reviewState: number
  issue?: string
  /** Text in Base64, because the original can contain any bytes. */
  findings: string
  type: EventType
  data: EventData
  /** True if the event was imported. The next import of the advisory can replace it. */
  imported: boolean
}

/** Content of an event, with the field names of the API. In a detection, `method` names the detection method. */
export type EventData = { readonly [member: string]: string | number | readonly string[] }

/**
 * Event that the component has moved in the artifact. It does not change the status. Version 2 of the API does not have such
 * events.
 */
export const moved = 'componentLocationChanged'

/** Event types in the order of the enum EventTypeFilter in the API, whose numbers begin with 1. */
export const eventTypes = [
  'detection',
  'truePositiveDetermination',
  'fixed',
  'falsePositiveDetermination',
  'analysisNotPlanned',
  'fixNotPlanned',
  'pendingUpstreamFix',
  'patched',
  moved,
] as const
export type EventType = (typeof eventTypes)[number]

/** Number of an event type in the enum EventTypeFilter of the API. */
export const eventTypeNumber = (type: EventType): number => eventTypes.indexOf(type) + 1

/** Numbers of the enum ReviewState in the API. */
export const reviewStates = { pending: 1, approved: 2, requestChanges: 3, rejected: 4 } as const

export const advisoryType = 'vulnerabilities.pinfold.dev/Advisory'
export const advisoryEventType = 'vulnerabilities.pinfold.dev/AdvisoryEvent'

const line = /^[^\p{Cc}]*$/u
const prose = /^(?:[^\p{Cc}]|[\t\r\n])*$/u

/** Fields of an advisory, for sorting and validation. */
export const advisoryFields = {
  uid: { column: 'uid', sort: true },
  advisoryId: { column: 'advisory_id', sort: true, required: true, pattern: /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/ },
  legacyAdvisoryId: { column: 'legacy_advisory_id', pattern: line, maxLength: 128 },
  origin: { column: 'origin', required: true, pattern: line, maxLength: 255 },
  author: { column: 'author', required: true, pattern: line, maxLength: 255 },
  artifactName: { column: 'artifact_name', sort: true, required: true, pattern: line, maxLength: 255 },
  artifactType: { column: 'artifact_type', pattern: line, maxLength: 64 },
  artifactArchitecture: { column: 'artifact_architecture', pattern: line, maxLength: 64 },
  componentName: { column: 'component_name', pattern: line, maxLength: 512 },
  componentType: { column: 'component_type', pattern: line, maxLength: 64 },
  componentLocation: { column: 'component_location', pattern: line, maxLength: 1024 },
  aliases: { column: 'aliases', required: true, pattern: /^[\x21-\x7e]{1,128}$/ },
  createTime: { column: 'create_time', sort: true },
  updateTime: { column: 'update_time', sort: true },
} as const satisfies Fields<Advisory>

/** Sort field that only version 1 of the API has. */
export const aliasOrderField = { column: 'alias_order', sort: true } as const

export const advisoryEventFields = {
  author: { column: 'author', required: true, pattern: line, maxLength: 255 },
  reviewer: { column: 'reviewer', pattern: line, maxLength: 255 },
  issue: { column: 'issue', pattern: line, maxLength: 1024 },
} as const satisfies Fields<AdvisoryEvent>

/** Pattern for the text fields of all event types. */
export const eventTextPattern = prose
export const maxEventText = 8192
export const maxFindingsBytes = 64 * 1024
export const maxAliases = 100
export const maxEvents = 200

/** The event that determines the current status. This is the latest approved event that is not a move of the component. */
export function currentEvent(advisory: Pick<Advisory, 'events'>): AdvisoryEvent | undefined {
  return advisory.events.findLast(({ reviewState, type }) => reviewState === reviewStates.approved && type !== moved)
}

/** The fields of an event that differ from their default. In messages, other fields have their default. */
export function dataOf(value: object): EventData {
  const members = Object.entries(value as Record<string, unknown>).filter(([name, value]) => {
    return !name.startsWith('$') && value !== '' && value !== 0 && !(Array.isArray(value) && value.length === 0)
  })
  return Object.fromEntries(members) as EventData
}

/** Content of a detection in documents and in version 1 of the API, where two fields have other names. */
export function namedDetection({ method, subpackage, component, ...rest }: EventData) {
  const names = {
    ...(subpackage === undefined ? {} : { subpackageName: subpackage }),
    ...(component === undefined ? {} : { componentName: component }),
  }
  return { type: { case: method, value: { ...rest, ...names } } }
}

/** Text for sorting by vulnerability IDs, cut to the length limit of an index. */
export function aliasOrder({ aliases }: Pick<Advisory, 'aliases'>): string {
  // The migration of earlier releases computes the text in the same way from the stored JSON.
  return JSON.stringify(aliases).slice(2, -2).replaceAll('","', ' ').slice(0, maxAliasOrder)
}
const maxAliasOrder = 255

/** Sorts by time. Events of the same time keep their order. */
export function inOrder(events: readonly AdvisoryEvent[]): AdvisoryEvent[] {
  return events.toSorted((a, b) => (a.createTime < b.createTime ? -1 : a.createTime > b.createTime ? 1 : 0))
}
