// Version order of RubyGems.
import { eq, lt, valid } from '@renovatebot/ruby-semver'

/** Numbers with more digits are refused, because the library reads numbers as floating point and would round them. */
const tooLong = /\d{16}/

/** Returns a number below 0, 0 or above 0. Undefined if one of the two is not a version. */
export function compareGem(one: string, other: string): number | undefined {
  if (!isVersion(one) || !isVersion(other)) return undefined
  return lt(one, other) ? -1 : eq(one, other) ? 0 : 1
}

/** RubyGems also accepts spaces and the empty text as versions, but no package has such a version. */
function isVersion(version: string): boolean {
  return /^\S+$/.test(version) && !tooLong.test(version) && valid(version) !== null
}
