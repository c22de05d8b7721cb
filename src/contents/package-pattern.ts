// Patterns for packages: a package URL with or without a version, and versions in a range.

import { goNamesOf } from '#versions/go-names.ts'
import type { VersionOrder } from '#versions/ranges.ts'
import { distributionOf, packageOf, packageUrl } from './package-url.ts'
import type { PackageKind } from './packages.ts'

/**
 * Pattern for packages. If `version` is empty, the pattern matches all versions. If it names no distribution, the distribution is
 * empty.
 */
export type PackagePattern = { kind: PackageKind; name: string; version: string; distribution: string }

/** Reads a package URL with or without a version. Returns undefined if the text is no package URL, or if its type is unknown. */
export function patternOf(url: string): PackagePattern | undefined {
  const end = url.search(/[?#]|$/)
  const [bare, rest] = [url.slice(0, end), url.slice(end)]
  const whole = packageOf(url)
  // An escaped name can contain an @, so the part after an @ need not be a version.
  const found = whole ?? packageOf(`${bare}@0${rest}`)
  if (!found) return undefined
  const { kind, name } = found
  const distribution = distributionOf(whole ? url : `${bare}@0${rest}`)?.id ?? ''
  return { kind, name, version: whole ? found.version : '', distribution }
}

/** Canonical text of a pattern. */
function patternText({ kind, name, version, distribution }: PackagePattern): string {
  const text = packageUrl({ kind, name, version, arch: '' }, distribution)
  return version === '' ? text.slice(0, -1) : text
}

const maxText = 512

/**
 * Canonical form of a package URL for the database. Undefined if the text is too long, or if reading it again gives another
 * pattern. An empty text stands for all packages.
 */
export function canonicalPattern(url: string): string | undefined {
  const pattern = patternOf(url)
  if (!pattern) return undefined
  const text = patternText(pattern)
  const back = patternOf(text)
  return back && text.length <= maxText && patternText(back) === text ? text : undefined
}

/** True if the pattern matches a package of a distribution. */
export function isMeant(
  { kind, name, version, distribution }: PackagePattern,
  one: { kind: string; name: string; version: string },
  ofDistribution: string,
): boolean {
  if (kind !== one.kind || !isSameName(kind, name, one.name) || (version !== '' && version !== one.version))
    return false
  return distribution === '' || distribution === ofDistribution
}

/** Names under which a matching package may be stored. */
export const namesMatched = ({ kind, name }: PackagePattern): string[] => (kind === 'golang' ? goNamesOf(name) : [name])

const isSameName = (kind: PackageKind, one: string, other: string): boolean =>
  one === other || (kind === 'golang' && one.toLowerCase() === other.toLowerCase())

const comparisons: Readonly<Record<string, (order: number) => boolean>> = {
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
  '=': (order) => order === 0,
}

/** Bounds of a version range. A version must meet all of them. */
export type Bounds = readonly { operator: string; version: string }[]

const maxBounds = 10

/** Parses bounds such as `>=1.2.0,<1.2.7`. Undefined if the text has another form. */
export function boundsOf(text: string): Bounds | undefined {
  const parts = text.split(',')
  if (parts.length > maxBounds) return undefined
  const bounds = parts.map((part) => {
    const [, operator = '', version = ''] = /^\s*(<=|>=|<|>|=)\s*([^\s<>=,]{1,256})\s*$/.exec(part) ?? []
    return { operator, version }
  })
  return bounds.every(({ operator }) => operator !== '') ? bounds : undefined
}

/** Compares a version with bounds. `unknown` if the version cannot be compared. */
export function isWithin(version: string, bounds: Bounds, order: VersionOrder | undefined): 'yes' | 'no' | 'unknown' {
  const compared = bounds.map(({ operator, version: bound }) => {
    const found = order?.(version, bound)
    return found === undefined ? undefined : comparisons[operator]!(found)
  })
  if (compared.includes(false)) return 'no'
  return compared.includes(undefined) ? 'unknown' : 'yes'
}
