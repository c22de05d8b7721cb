// What an advisory is found by: every value of it that a filter can name, as a term.

import { invalid } from '#lib/errors.ts'
import { type Advisory, currentEvent, eventTypeNumber, eventTypes, moved, reviewStates } from './advisories.model.ts'

/** The filters, by the numbers that are stored. A number is never used for anything else. */
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
  /** The set of states of its events, and the set of their types, so that an advisory has one of each: see `setOf`. */
  reviewStates: 11,
  eventTypes: 12,
  eventAuthor: 13,
  eventReviewer: 14,
  latestEventType: 15,
  /** The origin once more, of those that have something to publish. */
  document: 16,
} as const

export type Term = { facet: number; value: string }

/** The facets of which an advisory may have several terms. */
export const several: ReadonlySet<number> = new Set([facets.alias, facets.eventAuthor, facets.eventReviewer])

/** The facets whose terms have so few advisories that these are counted one by one. */
export const rare: ReadonlySet<number> = new Set([facets.advisoryId, facets.legacyAdvisoryId])

/** The facets in which `query` looks. */
export const searched: ReadonlySet<number> = new Set([facets.artifactName, facets.componentName, facets.alias])

/** What a list asks for; what is empty is not asked for. */
export type AdvisoryFilter = {
  /** For each facet the values of which an advisory must have one. */
  values: readonly { facet: number; values: readonly string[] }[]
  /** States and event types: an advisory must have an event with one of the numbers. */
  numbers: readonly { facet: number; numbers: readonly number[] }[]
  /** Authors of whom it must not have an event. */
  excludedAuthors: readonly string[]
  /** What the searched texts must hold; empty for anything. */
  query: string
}

/** All its terms, each once. */
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

/** Whether the advisory documents have something to say of it; they have no word for a patch, nor for a move. */
export function isPublished({ events }: Pick<Advisory, 'events'>): boolean {
  return events.some(isTold)
}

export function isTold({ reviewState, type }: Advisory['events'][number]): boolean {
  return reviewState === reviewStates.approved && type !== 'patched' && type !== moved
}

/** The number of the event that says how things stand, 0 for none, with a mark when the component has moved since. */
function latestOf(advisory: Advisory): string[] {
  const newest = advisory.events.findLast(({ reviewState }) => reviewState === reviewStates.approved)
  if (!newest) return []
  const current = currentEvent(advisory)
  const number = current ? eventTypeNumber(current.type) : 0
  return [newest.type === moved ? `${number}${movedSince}` : String(number)]
}

const movedSince = ' moved'
const movedNumber = eventTypeNumber(moved)

/** What stands for the newest approved event being of a type, where a move is an event as any other. */
export function latestIs(number: number): string[] {
  if (number !== movedNumber) return [String(number)]
  return [0, ...eventTypes.map(eventTypeNumber)].map((before) => `${before}${movedSince}`)
}

/** The same where moves are not known. */
export function latestButMovesIs(number: number): string[] {
  return [String(number), `${number}${movedSince}`]
}

/** A set of small numbers as one text: there are few such sets, and their counts add up. */
export function setOf(numbers: readonly number[]): string {
  return String(numbers.reduce((mask, number) => mask | (1 << number), 0))
}

/** Whether the set has one of `numbers`. */
export function setHas(set: string, numbers: readonly number[]): boolean {
  return (Number(set) & Number(setOf(numbers))) !== 0
}

/** What `query` looks at, case folded; no term has a line break. */
export function searchText({ artifactName, componentName, aliases }: Advisory): string {
  return [artifactName, componentName, ...aliases].map(folded).join('\n')
}

/** The one folding of case for what is stored and what is looked for. */
export function folded(text: string): string {
  return text.toLowerCase()
}

const suffixLength = 32

/** The start of every suffix of a term. A text is in the term when it, or as much of it as fits, starts one of them. */
export function suffixesOf(term: string): string[] {
  const points = [...folded(term)]
  return [...new Set(points.map((_, i) => points.slice(i, i + suffixLength).join('')))]
}

/** As much of a text as the suffixes can tell, and whether that is all of it. */
export function suffixStart(text: string): { start: string; whole: boolean } {
  const points = [...text]
  return { start: points.slice(0, suffixLength).join(''), whole: points.length <= suffixLength }
}

/** Values of one member of a request; `field` is how errors name it. */
type AskedValues = { facet: number; field: string; values: readonly string[] }
type AskedNumbers = { facet: number; field: string; numbers: readonly number[]; of: object }

/** What the members of a request ask for; what is empty asks for nothing. */
export type AskedAdvisories = {
  values: readonly AskedValues[]
  numbers: readonly AskedNumbers[]
  /** In place of the names of artifacts. */
  origin: string | undefined
  /** What the newest approved event may be. */
  latest: readonly string[]
  excludedAuthors: Omit<AskedValues, 'facet'>
  query: string
}

const maxValues = 1000

/** Throws INVALID_ARGUMENT for more than 1000 values of one member, and for numbers that their enum does not have. */
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
    // The value that stands for any makes the filter none.
    return given.length === 0 || given.includes(0) ? [] : [{ facet, numbers: given }]
  })
  return { values, numbers, excludedAuthors: distinct(excludedAuthors), query }
}

function distinct({ field, values }: Omit<AskedValues, 'facet'>): string[] {
  const found = [...new Set(values)]
  if (found.length <= maxValues) return found
  throw invalid({ field, description: `must hold at most ${maxValues} different values` })
}

/** Over gRPC a number comes as it is. Throws INVALID_ARGUMENT for one that the enum does not have. */
export function knownNumber(of: object, field: string, number: number): number {
  if (Object.values(of).includes(number)) return number
  throw invalid({ field, description: `is not a known value; known are ${Object.keys(of).join(', ')}` })
}
