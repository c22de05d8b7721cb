import type { Fields } from '#lib/fields.ts'

/** One vulnerability in one component of one artifact. Its uid begins with the uid of its group. */
export type Advisory = {
  uid: string
  advisoryId: string
  /** Empty if it has none. */
  legacyAdvisoryId: string
  /** The package that the artifact is built from. Filters can use it, but it is not shown. */
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

/** One step in the history of an advisory. Its uid begins with the uid of the advisory. */
export type AdvisoryEvent = {
  uid: string
  createTime: string
  author: string
  reviewer: string
  /** ReviewState of the contract. */
  reviewState: number
  issue?: string
  /** Base64, because it can have any bytes. */
  findings: string
  type: EventType
  data: EventData
  /** True if the event was imported. The next import of the advisory can replace it. */
  imported: boolean
}

/** Content of an event, with its members named as in the contract. In a detection, `method` names the detection method. */
export type EventData = { readonly [member: string]: string | number | readonly string[] }

/** A move of the component in the artifact, which does not change the status. Version 2 does not have such events. */
export const moved = 'componentLocationChanged'

/** In the order of EventTypeFilter in the contract, which counts from 1. */
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

/** Number of a type in EventTypeFilter of the contract. */
export const eventTypeNumber = (type: EventType): number => eventTypes.indexOf(type) + 1

/** ReviewState of the contract. */
export const reviewStates = { pending: 1, approved: 2, requestChanges: 3, rejected: 4 } as const

export const advisoryType = 'vulnerabilities.pinfold.dev/Advisory'
export const advisoryEventType = 'vulnerabilities.pinfold.dev/AdvisoryEvent'

const line = /^[^\p{Cc}]*$/u
const prose = /^(?:[^\p{Cc}]|[\t\r\n])*$/u

/** Table for sorting and validation. */
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

/** Additional sort field of version 1. */
export const aliasOrderField = { column: 'alias_order', sort: true } as const

export const advisoryEventFields = {
  author: { column: 'author', required: true, pattern: line, maxLength: 255 },
  reviewer: { column: 'reviewer', pattern: line, maxLength: 255 },
  issue: { column: 'issue', pattern: line, maxLength: 1024 },
} as const satisfies Fields<AdvisoryEvent>

/** Pattern of the texts of an event of any type. */
export const eventTextPattern = prose
export const maxEventText = 8192
export const maxFindingsBytes = 64 * 1024
export const maxAliases = 100
export const maxEvents = 200

/** The event that determines the current status: the latest approved one, except moves of the component. */
export function currentEvent(advisory: Pick<Advisory, 'events'>): AdvisoryEvent | undefined {
  return advisory.events.findLast(({ reviewState, type }) => reviewState === reviewStates.approved && type !== moved)
}

/** The members of an event that differ from their default. Messages have defaults for the others. */
export function dataOf(value: object): EventData {
  const members = Object.entries(value as Record<string, unknown>).filter(([name, value]) => {
    return !name.startsWith('$') && value !== '' && value !== 0 && !(Array.isArray(value) && value.length === 0)
  })
  return Object.fromEntries(members) as EventData
}

/** Value of a detection in documents and in version 1, which have other names for two members. */
export function namedDetection({ method, subpackage, component, ...rest }: EventData) {
  const names = {
    ...(subpackage === undefined ? {} : { subpackageName: subpackage }),
    ...(component === undefined ? {} : { componentName: component }),
  }
  return { type: { case: method, value: { ...rest, ...names } } }
}

/** Vulnerability IDs as one text that sorts in their order, cut to the limit of an index. */
export function aliasOrder({ aliases }: Pick<Advisory, 'aliases'>): string {
  // Computed from the stored text, as in the migration of earlier releases.
  return JSON.stringify(aliases).slice(2, -2).replaceAll('","', ' ').slice(0, maxAliasOrder)
}
const maxAliasOrder = 255

/** Sorts by time. Events of the same time keep their order. */
export function inOrder(events: readonly AdvisoryEvent[]): AdvisoryEvent[] {
  return events.toSorted((a, b) => (a.createTime < b.createTime ? -1 : a.createTime > b.createTime ? 1 : 0))
}
