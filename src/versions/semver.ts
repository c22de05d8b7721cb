// Semantic Versioning 2.0.0, the version order of npm, Cargo and Go.
import type { SemVer } from 'semver'
import parse from 'semver/functions/parse.js'

/**
 * Returns a number below 0, 0 or above 0. Undefined if one of the two is not a version. Missing numbers are zero, so 1.2 equals
 * 1.2.0. A leading v or V and the part after a plus sign are ignored.
 */
export function compareSemver(one: string, other: string): number | undefined {
  const [a, b] = [parsed(one), parsed(other)]
  return a && b ? a.compare(b) : undefined
}

const shortPattern = /^[vV=]*(\d+)(\.\d+)?([-+].*)?$/

function parsed(version: string): SemVer | undefined {
  const [whole, major, minor = '.0', rest = ''] = shortPattern.exec(version) ?? []
  return (
    parse(whole === undefined ? version.replace(/^V/, 'v') : `${major}${minor}.0${rest}`, { loose: true }) ?? undefined
  )
}
