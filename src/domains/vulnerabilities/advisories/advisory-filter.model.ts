// What a list of advisories is asked for, in whichever version, as a filter.
import { invalid } from '#lib/errors.ts'
import { type AdvisoryFilter, facets } from './advisory-terms.model.ts'

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
