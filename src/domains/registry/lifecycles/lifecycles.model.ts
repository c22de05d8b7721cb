import type { Fields } from '#lib/fields.ts'

/** Something that is released in lines, such as Node.js, and how long each of them lives. */
export type Product = {
  /** Its name in the list that it comes from, such as `nodejs`. */
  name: string
  label: string
  aliases: string[]
  /** Package URLs of what it is called elsewhere. */
  purls: string[]
  /** The newest first, as the list has them. */
  releases: Release[]
}

/** A line of releases. Days are `YYYY-MM-DD`, empty where they are not known. */
export type Release = {
  /** Its name, such as `22` or `3.12`. */
  cycle: string
  releaseDate: string
  eolDate: string
  /** Its life has ended, on a day that may not be known. */
  ended: boolean
  lts: boolean
  ltsDate: string
  /** The latest release of the line. */
  latest: string
  /** Its life has ended and it can no longer be built. */
  broken: boolean
  /** There is a build with FIPS cryptography. */
  fips: boolean
}

const line = /^[^\p{Cc}]*$/u
const day = /^(?:\d{4}-\d{2}-\d{2})?$/

export const productFields = {
  name: { column: 'name', required: true, pattern: /^[\x21-\x7e]{1,128}$/ },
  label: { column: 'label', pattern: line, maxLength: 256 },
  aliases: { column: 'aliases', pattern: /^[\x21-\x7e]{1,128}$/ },
  purls: { column: 'purls', pattern: /^pkg:[\x21-\x7e]{1,256}$/ },
} as const satisfies Fields<Product>

export const releaseFields = {
  cycle: { column: 'cycle', required: true, pattern: /^[^\p{Cc}]{1,128}$/u },
  releaseDate: { column: 'release_date', pattern: day },
  eolDate: { column: 'eol_date', pattern: day },
  ltsDate: { column: 'lts_date', pattern: day },
  latest: { column: 'latest', pattern: line, maxLength: 256 },
} as const satisfies Fields<Release>

/** How many products one request may bring, and how many aliases, package URLs and lines of releases one may have. */
export const maxProducts = 500
export const maxListed = 2000

/** A grace period lasts so long after the end of life. */
export const graceMonths = 6

/** What a product is found by; the lower the rank, the more it is meant by the name. */
export type ProductName = { name: string; rank: number }

/** Of package URLs those whose last part is what a repo or a package of a distribution is called. */
const rankOfPurl: readonly [RegExp, number][] = [
  [/^pkg:docker\/library\/([^?#@]+)/, 2],
  [/^pkg:generic\/([^/?#@]+)/, 2],
  [/^pkg:(?:apk|deb)\/[^/?#@]+\/([^/?#@]+)/, 3],
  [/^pkg:(?:docker|oci)\/(?:[^?#@]*\/)?([^/?#@]+)/, 4],
]

/** Each name once, with its lowest rank. */
export function namesOf({ name, aliases, purls }: Pick<Product, 'name' | 'aliases' | 'purls'>): ProductName[] {
  const ranks = new Map<string, number>([[name.toLowerCase(), 0]])
  const add = (given: string, rank: number) => {
    const one = given.toLowerCase()
    ranks.set(one, Math.min(rank, ranks.get(one) ?? rank))
  }
  for (const alias of aliases) add(alias, 1)
  for (const purl of purls) {
    for (const [pattern, rank] of rankOfPurl) {
      const found = pattern.exec(purl)?.[1]
      if (found === undefined) continue
      add(decoded(found), rank)
      break
    }
  }
  return [...ranks].map(([one, rank]) => ({ name: one, rank }))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
