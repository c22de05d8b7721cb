// Compares installed packages with advisories. This module has no state and does no look-ups.

import { type Covered, fixesAbove, inRanges, type VersionOrder, type VersionRange } from '#versions/ranges.ts'
import { isModular } from '#versions/rpm.ts'
import { archAndModule } from './rpm-module.ts'

/** Properties of an installed package that are compared with advisories. */
export type Installed = { name: string; version: string; origin: string; originVersion: string; arch: string }

/** Statement of an advisory on some versions of a package. */
export type Statement = {
  name: string
  ranges: readonly VersionRange[]
  versions: readonly string[]
  state: 'affected' | 'fixed' | 'not_affected' | 'wont_fix'
  qualifiers: { arch?: string; except?: readonly string[]; stream?: string }
}

/** Result of a comparison. `unknown`: the versions could not be compared, so the package may be vulnerable. */
export type Verdict = 'vulnerable' | 'clear' | 'unknown'

/**
 * Compares a package with a statement. The caller must have compared the ecosystems. `order` is the version order of the
 * ecosystem. Without an order, versions cannot be compared.
 */
export function verdictOf(installed: Installed, statement: Statement, order: VersionOrder | undefined): Verdict {
  const version = versionToCompare(installed, statement)
  if (version === undefined || statement.state === 'fixed' || statement.state === 'not_affected') return 'clear'
  const covered = coveredBy(version, statement, order)
  const inStream = isInStream(installed, statement)
  if (covered === 'no' || inStream === 'no') return 'clear'
  return covered === 'yes' && inStream === 'yes' ? 'vulnerable' : 'unknown'
}

/** True if a statement says that the installed version is not affected, is fixed, or is later than the fix. */
export function isCleared(installed: Installed, statement: Statement, order: VersionOrder | undefined): boolean {
  const version = versionToCompare(installed, statement)
  if (version === undefined || isInStream(installed, statement) !== 'yes') return false
  if (statement.state === 'fixed' || statement.state === 'not_affected')
    return coveredBy(version, statement, order) === 'yes'
  const isFixed = statement.ranges.some(({ events }) => events.some((event) => 'fixed' in event))
  return isFixed && coveredBy(version, statement, order) === 'no'
}

/** Versions with a fix, the lowest first. Empty if the statement names no fix. */
export function fixesFor(installed: Installed, statement: Statement, order: VersionOrder | undefined): string[] {
  const version = versionToCompare(installed, statement)
  return version === undefined || !order ? [] : fixesAbove(version, statement.ranges, order)
}

/**
 * Version to compare. Undefined if the statement is about another package. A statement about a source package applies to all
 * packages that were built from it.
 */
function versionToCompare(installed: Installed, { name, qualifiers }: Statement): string | undefined {
  const { arch } = archAndModule(installed.arch)
  if (qualifiers.arch !== undefined && qualifiers.arch !== '' && qualifiers.arch !== arch) return undefined
  if (name === installed.origin) return installed.originVersion
  return name === installed.name ? installed.version : undefined
}

/** Compares the module stream of the package with that of the statement, because each stream has separate fixes. */
function isInStream({ version, arch }: Installed, { ranges, qualifiers: { stream } }: Statement): Covered {
  const { module } = archAndModule(arch)
  const isOfModule = module !== '' || isModular(version)
  if (stream !== undefined) {
    if (!isOfModule) return 'no'
    // If the package or the statement names no stream, the streams may be equal.
    return module === '' || stream === '' ? 'unknown' : stream.split(' ').includes(module) ? 'yes' : 'no'
  }
  const fixes = ranges.flatMap(({ events }) => events.flatMap((event) => ('fixed' in event ? [event.fixed] : [])))
  return isOfModule && fixes.length > 0 ? 'no' : 'yes'
}

function coveredBy(
  version: string,
  { ranges, versions, qualifiers }: Statement,
  order: VersionOrder | undefined,
): Covered {
  if (qualifiers.except?.includes(version)) return 'no'
  if (versions.includes(version)) return 'yes'
  const compare = order ?? (() => undefined)
  if (ranges.length === 0 && versions.length === 0) return 'yes'
  // Different spellings of the same version are equal.
  if (versions.some((one) => compare(version, one) === 0)) return 'yes'
  return inRanges(version, ranges, compare)
}
