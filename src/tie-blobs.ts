// A database and the folder of its blobs belong together. Each has an id, and each knows that of the other: two servers on
// one database with different folders, or on one folder with different databases, would lose what the other one has.
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { type Blobs, ContentMissing } from './blobs/blobs.ts'
import { idFile } from './blobs/disk.ts'
import { keepFact, readFact } from './db/facts.ts'
import type { Db } from './db/sql.ts'
import { someLocations } from './domains/registry/blobs/blobs.store.ts'

/** How many blobs of the database are looked for before a folder without an id is taken for its own. */
const sampled = 20

/**
 * Throws unless the folder is that of the database. At a first start, and for a folder of before, it becomes that, once some
 * of the blobs of the database are found in it. The folder knows the database before the database knows the folder, so a
 * crash in between is like a first start.
 */
export async function tieBlobs(db: Db, blobs: Blobs, folder: string): Promise<void> {
  const database = await db.tx((tx) => keepFact(tx, 'database_id', randomUUID()))
  const wanted = await readFact(db, 'blob_folder_id')
  let found = read(await blobs.readId())
  if (!found) {
    const sample = await look(db, blobs)
    if (sample === 'missing')
      throw lost('has none of the blobs of the database', folder, `${wanted ?? database} ${database}`)
    // Without blobs to look for, any folder that is empty could be the one.
    if (sample === 'none' && wanted !== undefined) {
      throw lost("is not the folder of this database's blobs", folder, `${wanted} ${database}`)
    }
    found = read(await blobs.keepId(`${wanted ?? randomUUID()} ${database}`))!
  }
  if (found.database !== database) throw foreign(folder)
  // Nothing but a file that the operator wrote as `lost` says has the id of the database twice.
  if (wanted === undefined && found.id !== database && (await look(db, blobs)) === 'missing') {
    throw lost('has none of the blobs of the database', folder, `${wanted ?? database} ${database}`)
  }
  const kept = wanted ?? (await db.tx((tx) => keepFact(tx, 'blob_folder_id', found.id)))
  if (kept !== found.id) throw refusal(`this database has its blobs in another folder than ${folder}`)
}

function read(text: string | undefined): { id: string; database: string } | undefined {
  if (text === undefined) return undefined
  const [id = '', database = ''] = text.split(' ')
  return { id, database }
}

/** One that is found is enough: others may have been lost, but no other folder has any. */
async function look(db: Db, blobs: Blobs): Promise<'found' | 'missing' | 'none'> {
  const locations = await someLocations(db, sampled)
  for (const location of locations) {
    try {
      const content = await blobs.read(location)
      content.stream().destroy()
      return 'found'
    } catch (error) {
      if (!(error instanceof ContentMissing)) throw error
    }
  }
  return locations.length === 0 ? 'none' : 'missing'
}

function refusal(what: string): Error {
  return new Error(
    `${what}; set --blobs (PINFOLD_BLOBS) to the folder that it was served with before, or move all of that folder there, with its file ${idFile}`,
  )
}

/** What is left of the database must not be lost with them: its ledger, and whatever is not a blob. */
function lost(why: string, folder: string, line: string): Error {
  const { message } = refusal(`${folder} ${why}`)
  return new Error(
    `${message}. If the blobs are gone for good, write the line "${line}" to ${join(folder, idFile)}: the server then starts without them`,
  )
}

function foreign(folder: string): Error {
  return new Error(
    `the blobs in ${folder} belong to another database; set --blobs (PINFOLD_BLOBS) to a folder of its own. If the other database is gone for good and this one takes its place, remove ${join(folder, idFile)} first`,
  )
}
