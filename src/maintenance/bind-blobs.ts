// Ties a database to its blob store, a folder or a bucket. Each has an id, and each stores the id of the other. Two servers on
// one database with different stores, or on one store with different databases, would delete each other's blobs.
import { randomUUID } from 'node:crypto'
import type { Blobs } from '#blobs/blobs.ts'
import { idFile } from '#blobs/disk.ts'
import type { blobLocationOf } from '#blobs/open.ts'
import { keepFact, readFact } from '#db/facts.ts'
import type { Db } from '#db/sql.ts'
import { someBlobs } from '#domains/registry/blobs/blobs.store.ts'

type BlobLocation = ReturnType<typeof blobLocationOf>

/** Number of the database's blobs that are looked up in a store without an id. If none is found, the store is refused. */
const sampled = 20

/**
 * Throws unless the store belongs to the database. At a first start, or for a folder without an id, links store and database if
 * the store has some of the database's blobs. The id is written to the store first, so a crash before the write to the database
 * is like a first start.
 */
export async function bindBlobStore(db: Db, blobs: Blobs, location: BlobLocation): Promise<void> {
  const database = await db.tx((tx) => keepFact(tx, 'database_id', randomUUID()))
  const wanted = await readFact(db, 'blob_folder_id')
  let found = parseId(await blobs.readId())
  if (!found) {
    const sample = await findSampleBlobs(db, blobs)
    if (sample === 'missing')
      throw lostBlobsError('has none of the blobs of the database', location, `${wanted ?? database} ${database}`)
    // If the database has no blobs to look up, an empty folder cannot be recognized as its store.
    if (sample === 'none' && wanted !== undefined) {
      throw lostBlobsError(`is not the ${location.kind} of this database's blobs`, location, `${wanted} ${database}`)
    }
    found = parseId(await blobs.keepId(`${wanted ?? randomUUID()} ${database}`))!
  }
  if (found.database !== database) throw foreignBlobsError(location)
  // The id of the database appears twice only in a file that the operator wrote, as `lostBlobsError` explains.
  if (wanted === undefined && found.id !== database && (await findSampleBlobs(db, blobs)) === 'missing') {
    throw lostBlobsError('has none of the blobs of the database', location, `${wanted ?? database} ${database}`)
  }
  const kept = wanted ?? (await db.tx((tx) => keepFact(tx, 'blob_folder_id', found.id)))
  if (kept !== found.id)
    throw mismatchError(`the blobs of this database are in another ${location.kind} than ${location.name}`, location)
}

/** Throws unless the store belongs to the database. Never links them, unlike the start of a server. */
export async function requireOwn(db: Db, blobs: Blobs): Promise<void> {
  const found = parseId(await blobs.readId())
  const database = await readFact(db, 'database_id')
  if (database === undefined)
    throw new Error('the database has no blob store yet; start the server, which connects the two, and try again')
  const isOwn = found?.database === database && found.id === (await readFact(db, 'blob_folder_id'))
  if (!isOwn) throw new Error('the blob store does not belong to this database; set --blobs to the store that does')
}

function parseId(text: string | undefined): { id: string; database: string } | undefined {
  if (text === undefined) return undefined
  const [id = '', database = ''] = text.split(' ')
  return { id, database }
}

/** One blob that is found is enough: others may have been lost, but another folder would have none of them. */
async function findSampleBlobs(db: Db, blobs: Blobs): Promise<'found' | 'missing' | 'none'> {
  const some = await someBlobs(db, sampled)
  for (const blob of some) {
    if (await blobs.has(blob)) return 'found'
  }
  return some.length === 0 ? 'none' : 'missing'
}

function mismatchError(what: string, { kind }: BlobLocation): Error {
  const move =
    kind === 'folder'
      ? `move all files of that folder to this one, with the file ${idFile}`
      : 'copy that store to this bucket first'
  return new Error(
    `${what}; set --blobs (PINFOLD_BLOBS) to the ${kind} that the server used before, or ${move}; pinfold server blobs copy --switch copies a folder or a bucket`,
  )
}

/** Loss of the blobs must not cause loss of the database too: it has the tag history and everything else that is not a blob. */
function lostBlobsError(why: string, location: BlobLocation, line: string): Error {
  const { message } = mismatchError(`${location.name} ${why}`, location)
  return new Error(
    `${message}. If the blobs are lost for good, write the line "${line}" to ${location.id}. The server then starts without them`,
  )
}

function foreignBlobsError({ name, kind, id }: BlobLocation): Error {
  return new Error(
    `the blobs in ${name} belong to another database; set --blobs (PINFOLD_BLOBS) to another ${kind}. If this database replaces the other one for good, remove ${id} first`,
  )
}
