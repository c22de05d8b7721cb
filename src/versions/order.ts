// The order of versions, as each package manager defines it.
import { compareApk } from './apk.ts'
import { compareDeb } from './deb.ts'

/** The schemes of distributions; those of languages sort by keys (`pep440.ts`, `maven.ts`). */
export type Scheme = 'apk' | 'deb'

const maxLength = 512

/** Below 0, 0 or above 0, like a comparator; undefined when one of the two is not a version. */
export function compareVersions(scheme: Scheme, one: string, other: string): number | undefined {
  if (one.length > maxLength || other.length > maxLength) return undefined
  return scheme === 'apk' ? compareApk(one, other) : compareDeb(one, other)
}
