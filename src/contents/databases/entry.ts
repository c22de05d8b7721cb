import type { Gap, Package } from '../packages.ts'

/** Entry of a package database. A reader yields one for each record, so that no record is lost. */
export type Entry = { package: Package } | { gap: Pick<Gap, 'reason' | 'message'> }

/** Entry for a package. If the package has no name or no version, the entry is a gap. */
export function entryOf(found: Package, message: string): Entry {
  if (found.name !== '' && found.version !== '') return { package: found }
  return { gap: { reason: 'UNIDENTIFIED', message } }
}
