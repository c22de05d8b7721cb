import type { Gap, Package } from '../packages.ts'

/** Entry of a package database: a reader gives one for each that it sees, so that none is lost. */
export type Entry = { package: Package } | { gap: Pick<Gap, 'reason' | 'message'> }

/** The package, or a gap if it lacks its name or version. */
export function entryOf(found: Package, message: string): Entry {
  if (found.name !== '' && found.version !== '') return { package: found }
  return { gap: { reason: 'UNIDENTIFIED', message } }
}
