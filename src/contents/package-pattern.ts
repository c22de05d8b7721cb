// Patterns for packages: a package URL with or without a version, and versions in a range.

import { goNamesOf } from '#versions/go-names.ts'
import type { VersionOrder } from '#versions/ranges.ts'
import { distributionOf, packageOf, packageUrl } from './package-url.ts'
import type { PackageKind } from './packages.ts'

/** A package of any version unless there is one. The distribution is empty where none is named. */
export type PackagePattern = { kind: PackageKind; name: string; version: string; distribution: string }

/** Reads a package URL, with or without a version. Returns undefined if its type is unknown or it is no package URL. */
export function patternOf(url: string): PackagePattern | undefined {
  const end = url.search(/[?#]|$/)
  const [bare, rest] = [url.slice(0, end), url.slice(end)]
  const whole = packageOf(url)
  // An escaped name may have an @ of its own, so one that is parted may be only a name.
  const found = whole ?? packageOf(`${bare}@0${rest}`)
  if (!found) return undefined
  const { kind, name } = found
  const distribution = distributionOf(whole ? url : `${bare}@0${rest}`)?.id ?? ''
  return { kind, name, version: whole ? found.version : '', distribution }
}

/** The one way to write it. */
function patternText({ kind, name, version, distribution }: PackagePattern): string {
  const text = packageUrl({ kind, name, version, arch: '' }, distribution)
  return version === '' ? text.slice(0, -1) : text
}

const maxText = 512

/**
 * Form of a package URL that is stored; undefined if it does not read back as the same, or is too long. An empty text is stored
 * for all packages.
 */
export function keptPattern(url: string): string | undefined {
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

/** Names under which the package of a pattern may be stored. */
export const namesMeant = ({ kind, name }: PackagePattern): string[] => (kind === 'golang' ? goNamesOf(name) : [name])

const isSameName = (kind: PackageKind, one: string, other: string): boolean =>
  one === other || (kind === 'golang' && one.toLowerCase() === other.toLowerCase())

const comparisons: Readonly<Record<string, (order: number) => boolean>> = {
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
  '=': (order) => order === 0,
}

/** All of them are to be met. */
export type Bounds = readonly { operator: string; version: string }[]

const maxBounds = 10

/** `>=1.2.0,<1.2.7`; undefined when it is not written so. */
export function boundsOf(text: string): Bounds | undefined {
  const parts = text.split(',')
  if (parts.length > maxBounds) return undefined
  const bounds = parts.map((part) => {
    const [, operator = '', version = ''] = /^\s*(<=|>=|<|>|=)\s*([^\s<>=,]{1,256})\s*$/.exec(part) ?? []
    return { operator, version }
  })
  return bounds.every(({ operator }) => operator !== '') ? bounds : undefined
}

/** `unknown` when the version cannot be compared. */
export function isWithin(version: string, bounds: Bounds, order: VersionOrder | undefined): 'yes' | 'no' | 'unknown' {
  const compared = bounds.map(({ operator, version: bound }) => {
    const found = order?.(version, bound)
    return found === undefined ? undefined : comparisons[operator]!(found)
  })
  if (compared.includes(false)) return 'no'
  return compared.includes(undefined) ? 'unknown' : 'yes'
}
