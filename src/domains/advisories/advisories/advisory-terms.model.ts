// Search terms of an advisory. Each value that a filter can name is a term.

import { invalid } from '#lib/errors.ts'
import { type Advisory, currentEvent, eventTypeNumber, eventTypes, moved, reviewStates } from './advisories.model.ts'

/** Filters with their numbers in the database. A number must not be reused. */
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
  /**
   * Bit set of the review states of the advisory's events, and bit set of the types of its events. An advisory has one term of
   * each. See `setOf`.
   */
  reviewStates: 11,
  eventTypes: 12,
  eventAuthor: 13,
  eventReviewer: 14,
  latestEventType: 15,
  /** The same value as `origin`, only for advisories with published content. */
  document: 16,
} as const

export type Term = { facet: number; value: string }

/** Facets for which an advisory can have several terms. */
export const several: ReadonlySet<number> = new Set([facets.alias, facets.eventAuthor, facets.eventReviewer])

/** Facets without counters. Each of their terms has so few advisories that these are counted one by one. */
export const rare: ReadonlySet<number> = new Set([facets.advisoryId, facets.legacyAdvisoryId])

/** Facets that the text filter `query` searches. */
export const searched: ReadonlySet<number> = new Set([facets.artifactName, facets.componentName, facets.alias])

/** Filter of a list of advisories. An empty field has no effect. */
export type AdvisoryFilter = {
  /** For each facet, a list of values. An advisory must have at least one of them. */
  values: readonly { facet: number; values: readonly string[] }[]
  /** Review states and event types. An advisory must have an event with one of the numbers. */
  numbers: readonly { facet: number; numbers: readonly number[] }[]
  /** Authors to exclude. An advisory with an event of one of these authors does not match. */
  excludedAuthors: readonly string[]
  /** Text that one of the searched values must contain. Empty for any text. */
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

/** True if the published documents include the advisory. Documents cannot express a patch or a move of the component. */
function isPublished({ events }: Pick<Advisory, 'events'>): boolean {
  return events.some(isPublishedEvent)
}

export function isPublishedEvent({ reviewState, type }: Advisory['events'][number]): boolean {
  return reviewState === reviewStates.approved && type !== 'patched' && type !== moved
}

/** Number of the current event's type, or 0 without a current event. A mark follows if the component has moved since. */
function latestOf(advisory: Advisory): string[] {
  const newest = advisory.events.findLast(({ reviewState }) => reviewState === reviewStates.approved)
  if (!newest) return []
  const current = currentEvent(advisory)
  const number = current ? eventTypeNumber(current.type) : 0
  return [newest.type === moved ? `${number}${movedSince}` : String(number)]
}

const movedSince = ' moved'
const movedNumber = eventTypeNumber(moved)

/** Terms of advisories whose newest approved event has this type. Moves of the component are included. */
export function latestIs(number: number): string[] {
  if (number !== movedNumber) return [String(number)]
  return [0, ...eventTypes.map(eventTypeNumber)].map((before) => `${before}${movedSince}`)
}

/** Terms of advisories whose newest approved event has this type. Moves of the component are ignored. */
export function latestButMovesIs(number: number): string[] {
  return [String(number), `${number}${movedSince}`]
}

/** Text of a bit set of small numbers. Few different sets occur, so filters can add up their counters. */
function setOf(numbers: readonly number[]): string {
  return String(numbers.reduce((mask, number) => mask | (1 << number), 0))
}

/** True if the set has one of `numbers`. */
export function setHas(set: string, numbers: readonly number[]): boolean {
  return (Number(set) & Number(setOf(numbers))) !== 0
}

/** Text in folded case that `query` searches. Line breaks separate the terms. */
export function searchText({ artifactName, componentName, aliases }: Advisory): string {
  return [artifactName, componentName, ...aliases].map(folded).join('\n')
}

/** Folds the case of stored and searched texts in the same way. */
export function folded(text: string): string {
  return text.toLowerCase()
}

const suffixLength = 32

/**
 * The first 32 characters of each suffix of a term. To search a text in terms, compare its first 32 characters with the start of
 * these suffixes.
 */
export function suffixesOf(term: string): string[] {
  const points = [...folded(term)]
  return [...new Set(points.map((_, i) => points.slice(i, i + suffixLength).join('')))]
}

/** The first 32 characters of a text. `whole` is true if the text is not longer. */
export function suffixStart(text: string): { start: string; whole: boolean } {
  const points = [...text]
  return { start: points.slice(0, suffixLength).join(''), whole: points.length <= suffixLength }
}

/** Values of one field in a request. `field` is the name of the field in errors. */
type ValueFilter = { facet: number; field: string; values: readonly string[] }
type NumberFilter = { facet: number; field: string; numbers: readonly number[]; of: object }

/** Filters in a request. An empty filter has no effect. */
export type RequestedFilters = {
  values: readonly ValueFilter[]
  numbers: readonly NumberFilter[]
  /** If set, replaces the filter by artifact names. */
  origin: string | undefined
  /** Terms for the type of the newest approved event. */
  latest: readonly string[]
  excludedAuthors: Omit<ValueFilter, 'facet'>
  query: string
}

const maxValues = 1000

/**
 * Reads filters from a request. Throws INVALID_ARGUMENT if a field has more than 1000 values, or a number that is not in its
 * enum.
 */
export function filterFrom({ origin, latest, excludedAuthors, query, ...asked }: RequestedFilters): AdvisoryFilter {
  const values = asked.values.flatMap(({ facet, ...member }) => {
    if (facet === facets.artifactName && origin !== undefined) return []
    const wanted = distinct(member)
    return wanted.length > 0 ? [{ facet, values: wanted }] : []
  })
  if (origin !== undefined) values.push({ facet: facets.origin, values: [origin] })
  if (latest.length > 0) values.push({ facet: facets.latestEventType, values: [...latest] })
  const numbers = asked.numbers.flatMap(({ facet, field, numbers: given, of }) => {
    for (const number of given) knownNumber(of, field, number)
    // The number 0 matches any value, so it removes the filter.
    return given.length === 0 || given.includes(0) ? [] : [{ facet, numbers: given }]
  })
  return { values, numbers, excludedAuthors: distinct(excludedAuthors), query }
}

function distinct({ field, values }: Omit<ValueFilter, 'facet'>): string[] {
  const found = [...new Set(values)]
  if (found.length <= maxValues) return found
  throw invalid({ field, description: `must have at most ${maxValues} different values` })
}

/** Checks an enum number from a gRPC request. Throws INVALID_ARGUMENT if the number is not in the enum. */
export function knownNumber(of: object, field: string, number: number): number {
  if (Object.values(of).includes(number)) return number
  throw invalid({ field, description: `is not a known value; known are ${Object.keys(of).join(', ')}` })
}
