// The order of Ruby's versions.
import { eq, lt, valid } from '@renovatebot/ruby-semver'

/** The library reads numbers as floating point, so a number with more digits would be rounded. */
const tooLong = /\d{16}/

/** Below 0, 0 or above 0; undefined when one of the two is not a version. */
export function compareGem(one: string, other: string): number | undefined {
  if (!isVersion(one) || !isVersion(other)) return undefined
  return lt(one, other) ? -1 : eq(one, other) ? 0 : 1
}

/** RubyGems also accepts blanks and the empty text as versions, which nobody has published. */
function isVersion(version: string): boolean {
  return /^\S+$/.test(version) && !tooLong.test(version) && valid(version) !== null
}
