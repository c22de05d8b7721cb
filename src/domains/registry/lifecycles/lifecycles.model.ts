import type { Fields } from '#lib/fields.ts'
import { decodePercent } from '#lib/net/percent-encoding.ts'

/** Product with release lines, such as Node.js, and the lifetime of each line. */
export type Product = {
  /** Name in the imported product data, such as `nodejs`. */
  name: string
  label: string
  aliases: string[]
  /** Package URLs of the product. */
  purls: string[]
  /** The newest first, as in the imported data. */
  releases: Release[]
}

/** A release line. Days are `YYYY-MM-DD`, or empty if unknown. */
export type Release = {
  /** Name of the line, such as `22` or `3.12`. */
  cycle: string
  releaseDate: string
  eolDate: string
  /** True if the line has ended, even if the day is unknown. */
  ended: boolean
  lts: boolean
  ltsDate: string
  /** Latest release of the line. */
  latest: string
  /** True if the line has ended and can no longer be built. */
  broken: boolean
  /** True if there is a build with FIPS cryptography. */
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

/** Most products in one request, and most aliases, package URLs and release lines of one product. */
export const maxProducts = 500
export const maxListed = 2000

/** Length of a grace period after the end of life, in months. */
export const graceMonths = 6

/** Name for finding a product. A lower rank is a better match. */
export type ProductName = { name: string; rank: number }

/**
 * Package URLs that contain a name of the product as their last part: the name of a repository or of a distribution package. Each
 * pattern has the rank of this name.
 */
const rankOfPurl: readonly [RegExp, number][] = [
  [/^pkg:docker\/library\/([^?#@]+)/, 2],
  [/^pkg:generic\/([^/?#@]+)/, 2],
  [/^pkg:(?:apk|deb)\/[^/?#@]+\/([^/?#@]+)/, 3],
  [/^pkg:(?:docker|oci)\/(?:[^?#@]*\/)?([^/?#@]+)/, 4],
]

/** Names for finding a product, each once with its lowest rank. */
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
      add(decodePercent(found), rank)
      break
    }
  }
  return [...ranks].map(([one, rank]) => ({ name: one, rank }))
}
