import type { Fields } from '#lib/fields.ts'

/** One vulnerability in one component of one artifact; its uid starts with that of its group. */
export type Advisory = {
  uid: string
  advisoryId: string
  /** Empty when it had none. */
  legacyAdvisoryId: string
  /** The package that the artifact is built from. Not shown, but filtered by. */
  origin: string
  author: string
  artifactName: string
  artifactType: string
  artifactArchitecture: string
  componentName: string
  componentType: string
  componentLocation: string
  aliases: string[]
  /** In the order of their times. */
  events: AdvisoryEvent[]
  createTime: string
  updateTime: string
}

/** One step in the life of an advisory; its uid starts with the advisory's. */
export type AdvisoryEvent = {
  uid: string
  createTime: string
  author: string
  reviewer: string
  /** The contract's ReviewState. */
  reviewState: number
  issue?: string
  /** Base64, since it may be any bytes. */
  findings: string
  type: EventType
  data: EventData
  /** It came with an import, and the next import of the advisory may replace it. */
  imported: boolean
}

/** What a kind of event says, its members named as in the contract; a detection says in `method` how it was made. */
export type EventData = { readonly [member: string]: string | number | readonly string[] }

/** The component moved in the artifact: nothing that changes how things stand. Version 2 does not know such events. */
export const moved = 'componentLocationChanged'

/** In the order of the contract's EventTypeFilter, which counts from 1. */
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

/** The number of a type in the contract's EventTypeFilter. */
export const eventTypeNumber = (type: EventType): number => eventTypes.indexOf(type) + 1

/** The contract's ReviewState. */
export const reviewStates = { pending: 1, approved: 2, requestChanges: 3, rejected: 4 } as const

export const advisoryType = 'vulnerabilities.pinfold.dev/Advisory'
export const advisoryEventType = 'vulnerabilities.pinfold.dev/AdvisoryEvent'

const line = /^[^\p{Cc}]*$/u
const prose = /^(?:[^\p{Cc}]|[\t\r\n])*$/u

/** Sorting and validation read this table. */
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

/** What version 1 can sort by as well. */
export const aliasOrderField = { column: 'alias_order', sort: true } as const

export const advisoryEventFields = {
  author: { column: 'author', required: true, pattern: line, maxLength: 255 },
  reviewer: { column: 'reviewer', pattern: line, maxLength: 255 },
  issue: { column: 'issue', pattern: line, maxLength: 1024 },
} as const satisfies Fields<AdvisoryEvent>

/** What the texts of an event must match, whatever its type. */
export const eventTextPattern = prose
export const maxEventText = 8192
export const maxFindingsBytes = 64 * 1024
export const maxAliases = 100
export const maxEvents = 200

/** The event that says how things stand: the latest approved one, but for moves of the component. */
export function currentEvent(advisory: Pick<Advisory, 'events'>): AdvisoryEvent | undefined {
  return advisory.events.findLast(({ reviewState, type }) => reviewState === reviewStates.approved && type !== moved)
}

/** What of the value of an event differs from nothing; a message gives the rest by itself. */
export function dataOf(value: object): EventData {
  const members = Object.entries(value as Record<string, unknown>).filter(([name, value]) => {
    return !name.startsWith('$') && value !== '' && value !== 0 && !(Array.isArray(value) && value.length === 0)
  })
  return Object.fromEntries(members) as EventData
}

/** The value of a detection as documents and version 1 have it, with other names for two members. */
export function namedDetection({ method, subpackage, component, ...rest }: EventData) {
  const names = {
    ...(subpackage === undefined ? {} : { subpackageName: subpackage }),
    ...(component === undefined ? {} : { componentName: component }),
  }
  return { type: { case: method, value: { ...rest, ...names } } }
}

/** The ids of the vulnerability in one text that sorts as they do, as far as an index takes it. */
export function aliasOrder({ aliases }: Pick<Advisory, 'aliases'>): string {
  // Taken from the text that is stored, as the migration takes it from those of earlier releases.
  return JSON.stringify(aliases).slice(2, -2).replaceAll('","', ' ').slice(0, maxAliasOrder)
}
const maxAliasOrder = 255

/** In the order of their times; events of the same time stay as they were. */
export function inOrder(events: readonly AdvisoryEvent[]): AdvisoryEvent[] {
  return events.toSorted((a, b) => (a.createTime < b.createTime ? -1 : a.createTime > b.createTime ? 1 : 0))
}
