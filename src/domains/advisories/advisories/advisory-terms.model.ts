// Search terms of an advisory: each value of it that a filter can name.

import { invalid } from '#lib/errors.ts'
import { type Advisory, currentEvent, eventTypeNumber, eventTypes, moved, reviewStates } from './advisories.model.ts'

/** The filters, with the numbers that are stored. A number must not be reused. */
export const facets = {
  advisoryId: 1,
  legacyAdvisoryId: 2,
  artifactName: 3,
  artifactType: 4,
  artifactArchitecture: 5,
  componentName: 6,
  componentType: 7,
  componentLocation: 8,
  alias: 9,
  origin: 10,
  /** Bit set of the review states of its events, and bit set of their types. An advisory has one term of each: see `setOf`. */
  reviewStates: 11,
  eventTypes: 12,
  eventAuthor: 13,
  eventReviewer: 14,
  latestEventType: 15,
  /** The origin again, only for advisories with published content. */
  document: 16,
} as const

export type Term = { facet: number; value: string }

/** Facets for which an advisory can have several terms. */
export const several: ReadonlySet<number> = new Set([facets.alias, facets.eventAuthor, facets.eventReviewer])

/** Facets whose terms have so few advisories that these are counted one by one. */
export const rare: ReadonlySet<number> = new Set([facets.advisoryId, facets.legacyAdvisoryId])

/** Facets that `query` searches. */
export const searched: ReadonlySet<number> = new Set([facets.artifactName, facets.componentName, facets.alias])

/** Filter of a list of advisories. An empty member filters nothing. */
export type AdvisoryFilter = {
  /** For each facet, the values of which an advisory must have at least one. */
  values: readonly { facet: number; values: readonly string[] }[]
  /** Review states and event types: an advisory must have an event with one of the numbers. */
  numbers: readonly { facet: number; numbers: readonly number[] }[]
  /** Authors of whom the advisory must not have an event. */
  excludedAuthors: readonly string[]
  /** Text that the searched values must contain. Empty for any. */
  query: string
}

/** All terms of an advisory, without duplicates. */
export function termsOf(advisory: Advisory): Term[] {
  const { events, aliases } = advisory
  const all = (facet: number, values: readonly string[]) => values.map((value) => ({ facet, value }))
  return [
    { facet: facets.advisoryId, value: advisory.advisoryId },
    ...all(facets.legacyAdvisoryId, advisory.legacyAdvisoryId === '' ? [] : [advisory.legacyAdvisoryId]),
    { facet: facets.artifactName, value: advisory.artifactName },
    { facet: facets.artifactType, value: advisory.artifactType },
    { facet: facets.artifactArchitecture, value: advisory.artifactArchitecture },
    { facet: facets.componentName, value: advisory.componentName },
    { facet: facets.componentType, value: advisory.componentType },
    { facet: facets.componentLocation, value: advisory.componentLocation },
    ...all(facets.alias, [...new Set(aliases)]),
    { facet: facets.origin, value: advisory.origin },
    { facet: facets.reviewStates, value: setOf(events.map(({ reviewState }) => reviewState)) },
    { facet: facets.eventTypes, value: setOf(events.map(({ type }) => eventTypeNumber(type))) },
    ...all(facets.eventAuthor, [...new Set(events.map(({ author }) => author))]),
    ...all(facets.eventReviewer, [...new Set(events.flatMap(({ reviewer }) => (reviewer ? [reviewer] : [])))]),
    ...all(facets.latestEventType, latestOf(advisory)),
    ...all(facets.document, isPublished(advisory) ? [advisory.origin] : []),
  ]
}

/** True if the advisory documents include the advisory. They cannot express a patch or a move of the component. */
function isPublished({ events }: Pick<Advisory, 'events'>): boolean {
  return events.some(isPublishedEvent)
}

export function isPublishedEvent({ reviewState, type }: Advisory['events'][number]): boolean {
  return reviewState === reviewStates.approved && type !== 'patched' && type !== moved
}

/** Number of the current event's type, 0 for none, with a mark if the component has moved since. */
function latestOf(advisory: Advisory): string[] {
  const newest = advisory.events.findLast(({ reviewState }) => reviewState === reviewStates.approved)
  if (!newest) return []
  const current = currentEvent(advisory)
  const number = current ? eventTypeNumber(current.type) : 0
  return [newest.type === moved ? `${number}${movedSince}` : String(number)]
}

const movedSince = ' moved'
const movedNumber = eventTypeNumber(moved)

/** Terms that match if the newest approved event has this type. A move counts as an event of its own. */
export function latestIs(number: number): string[] {
  if (number !== movedNumber) return [String(number)]
  return [0, ...eventTypes.map(eventTypeNumber)].map((before) => `${before}${movedSince}`)
}

/** Terms that match if the newest approved event except moves has this type. */
export function latestButMovesIs(number: number): string[] {
  return [String(number), `${number}${movedSince}`]
}

/** Bit set of small numbers as text. Few different sets occur, so their counters can be added. */
function setOf(numbers: readonly number[]): string {
  return String(numbers.reduce((mask, number) => mask | (1 << number), 0))
}

/** True if the set has one of `numbers`. */
export function setHas(set: string, numbers: readonly number[]): boolean {
  return (Number(set) & Number(setOf(numbers))) !== 0
}

/** Case-folded text that `query` searches. No term has a line break. */
export function searchText({ artifactName, componentName, aliases }: Advisory): string {
  return [artifactName, componentName, ...aliases].map(folded).join('\n')
}

/** Case folding for stored and searched texts alike. */
export function folded(text: string): string {
  return text.toLowerCase()
}

const suffixLength = 32

/**
 * The first 32 characters of each suffix of a term. A term contains a text if one of them starts with the text, cut to 32
 * characters.
 */
export function suffixesOf(term: string): string[] {
  const points = [...folded(term)]
  return [...new Set(points.map((_, i) => points.slice(i, i + suffixLength).join('')))]
}

/** The first 32 characters of a text, and if that is the whole text. */
export function suffixStart(text: string): { start: string; whole: boolean } {
  const points = [...text]
  return { start: points.slice(0, suffixLength).join(''), whole: points.length <= suffixLength }
}

/** Values of one member of a request. `field` is its name in errors. */
type AskedValues = { facet: number; field: string; values: readonly string[] }
type AskedNumbers = { facet: number; field: string; numbers: readonly number[]; of: object }

/** Filters from the members of a request. An empty one filters nothing. */
export type AskedAdvisories = {
  values: readonly AskedValues[]
  numbers: readonly AskedNumbers[]
  /** Replaces the filter by names of artifacts. */
  origin: string | undefined
  /** Types that the newest approved event can have. */
  latest: readonly string[]
  excludedAuthors: Omit<AskedValues, 'facet'>
  query: string
}

const maxValues = 1000

/** Throws INVALID_ARGUMENT if a member has more than 1000 values, or a number that is not in its enum. */
export function filterFrom({ origin, latest, excludedAuthors, query, ...asked }: AskedAdvisories): AdvisoryFilter {
  const values = asked.values.flatMap(({ facet, ...member }) => {
    if (facet === facets.artifactName && origin !== undefined) return []
    const wanted = distinct(member)
    return wanted.length > 0 ? [{ facet, values: wanted }] : []
  })
  if (origin !== undefined) values.push({ facet: facets.origin, values: [origin] })
  if (latest.length > 0) values.push({ facet: facets.latestEventType, values: [...latest] })
  const numbers = asked.numbers.flatMap(({ facet, field, numbers: given, of }) => {
    for (const number of given) knownNumber(of, field, number)
    // The number 0 stands for any value and removes the filter.
    return given.length === 0 || given.includes(0) ? [] : [{ facet, numbers: given }]
  })
  return { values, numbers, excludedAuthors: distinct(excludedAuthors), query }
}

function distinct({ field, values }: Omit<AskedValues, 'facet'>): string[] {
  const found = [...new Set(values)]
  if (found.length <= maxValues) return found
  throw invalid({ field, description: `must have at most ${maxValues} different values` })
}

/** Checks an enum number from gRPC. Throws INVALID_ARGUMENT if it is not in the enum. */
export function knownNumber(of: object, field: string, number: number): number {
  if (Object.values(of).includes(number)) return number
  throw invalid({ field, description: `is not a known value; known are ${Object.keys(of).join(', ')}` })
}
