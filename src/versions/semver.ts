// The order of versions of npm, Cargo and Go: Semantic Versioning 2.0.0.
import type { SemVer } from 'semver'
import parse from 'semver/functions/parse.js'

/**
 * Below 0, 0 or above 0; undefined when one of the two is not a version. What an advisory leaves out counts as zero, so
 * that 1.2 is 1.2.0; a leading v or V and what follows a plus sign do not count.
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
