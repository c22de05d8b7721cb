// What a vulnerability is counted under, whichever of its names is given.
import type { Reader } from '#db/sql.ts'
import { ownSource } from '../own/own-advisories.service.ts'
import { vulnerabilityIds } from '../records/records.model.ts'
import { recordsNamed } from './known.store.ts'

const mostRecords = 100

/**
 * The id that counts for a name: the CVE of an alias. The name itself where nothing is known of it, and where records of the
 * name are about several vulnerabilities. Advisories of organisations count in their own places only.
 */
export async function canonicalName(reader: Reader, name: string, places: readonly string[]): Promise<string> {
  const records = await recordsNamed(reader, name, { own: ownSource, places, most: mostRecords })
  const ids = new Set(records.flatMap(vulnerabilityIds))
  const [only] = ids
  return ids.size === 1 && only !== undefined ? only : name
}

/** Whether a record of this name holds, of a data source or of an advisory in one of the places. */
export async function hasRecord(reader: Reader, name: string, places: readonly string[]): Promise<boolean> {
  return (await recordsNamed(reader, name, { own: ownSource, places, most: 1 })).length > 0
}

const maxName = 256

/** What is wrong with the id of a vulnerability as somebody gives it. */
export function problemOfName(name: string): string | undefined {
  if (name === '') return 'is required'
  return /^[\w.:/+-]+$/.test(name) && name.length <= maxName ? undefined : 'is not the id of a vulnerability'
}
