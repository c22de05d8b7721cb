// Compares the rows of blobs and uploads with the content in the store, in both directions.
import { createHash, randomBytes } from 'node:crypto'
import { type Blobs, ContentMissing, type Stored } from '#blobs/blobs.ts'
import type { Db } from '#db/sql.ts'
import { algorithmOf } from '#lib/digest.ts'
import { eachAtOnce } from '#lib/scheduling/each-at-once.ts'
import { inRepo, moveBlob, someBlobs } from '../blobs/blobs.store.ts'
import { knownLocations, trashedLocations } from '../blobs/collection.store.ts'
import { addTrash, contentsAfter, locationIsKnown, type StoredContent, uploadAt } from '../blobs/locations.store.ts'
import { deleteUpload } from '../blobs/uploads.store.ts'
import type { Problem, Watch } from './verification.model.ts'

export type Contents = {
  db: Db
  blobs: Blobs
  /** Random share of contents whose digest is verified, from 0 to 1. */
  hash: number
  /** Removal time of content that is moved to the trash. */
  due: string
}

const page = 500
const atOnce = 8
/** Minimum age of content without a row. Younger content may belong to a push that has not written its row yet. */
const leastFileAgeMs = 3600_000
const leastObjectAgeMs = 24 * 3600_000

/**
 * Verifies that every blob and every chunk of an upload has content of its size. Also verifies the digests of a random share of
 * them.
 */
export async function verifyContents(at: Contents, watch: Watch): Promise<void> {
  for (let after = ''; ; ) {
    const contents = await contentsAfter(at.db, after, page)
    await eachAtOnce(atOnce, contents, (content) => verifyContent(at, content, watch))
    if (contents.length < page) return
    after = contents.at(-1)!.location
  }
}

async function verifyContent(at: Contents, content: StoredContent, watch: Watch): Promise<void> {
  const { db } = at
  const { location, size, digest } = content
  const upload = await uploadAt(db, location)
  const check = upload === undefined ? 'blobs' : 'uploads'
  const problem = await problemOf(at, content)
  watch.examined(check, 1)
  // The content may have been deleted, or its upload completed, since the row was read.
  if (!problem || !(await locationIsKnown(db, location))) return
  const repaired = watch.repair && (await repairContent(at, content, problem, upload))
  const subject = upload === undefined ? digest : location
  watch.found({ check, problem, subject, detail: `${location}, ${size} bytes`, repaired })
}

async function problemOf({ blobs, hash }: Contents, content: StoredContent): Promise<Problem | undefined> {
  const { location, size, digest } = content
  if (!(await blobs.has({ location, size }))) return 'content missing or short'
  if (digest === '' || Math.random() >= hash) return undefined
  // A single wrong read is no proof of bad content, so the content is read twice.
  const found = (await digestAt(blobs, content)) === digest || (await digestAt(blobs, content))
  if (found === undefined) return 'content missing or short'
  return found === true || found === digest ? undefined : 'content has another digest'
}

/** Digest of the stored content. Returns undefined if it does not exist. */
async function digestAt(blobs: Blobs, { location, size, digest }: StoredContent): Promise<string | undefined> {
  const read = await blobs.read({ location, size }).catch(unlessMissing)
  if (!read) return undefined
  const found = createHash(algorithmOf(digest))
  for await (const chunk of read.stream() as AsyncIterable<Buffer>) found.update(chunk)
  return `${algorithmOf(digest)}:${found.digest('hex')}`
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof ContentMissing)) throw error
  return undefined
}

async function repairContent(
  { db, blobs, due }: Contents,
  content: StoredContent,
  problem: Problem,
  upload: string | undefined,
): Promise<boolean> {
  if (upload !== undefined) {
    // The upload cannot be completed any more, so it is deleted. The client has to start a new upload.
    const ended = await db.tx((tx) => deleteUpload(tx, upload), inRepo)
    await blobs.removeAll(ended?.locations ?? [])
    return ended !== undefined
  }
  // Missing content is not repaired: pulls of it fail anyway, and a new push restores it.
  if (problem !== 'content has another digest') return false
  const name = randomBytes(16).toString('hex')
  return db.tx(async (tx) => {
    if (!(await moveBlob(tx, content, `c/${name.slice(0, 2)}/${name}`))) return false
    await addTrash(tx, content, due)
    return true
  }, inRepo)
}

/** Verifies that all content above the minimum age has a row or is in the trash. */
export async function verifyOrphans({ db, blobs, due }: Contents, now: number, watch: Watch): Promise<void> {
  const theirs = await blobs.clock?.()
  const before = (theirs ?? now) - (theirs === undefined ? leastFileAgeMs : leastObjectAgeMs)
  const isEmpty = (await someBlobs(db, 1)).length === 0
  const look = async (files: readonly Stored[]): Promise<void> => {
    const locations = files.map(({ location }) => location)
    const known = await knownLocations(db, locations)
    const waiting = await trashedLocations(db, locations)
    for (const file of files.filter(({ location }) => !known.has(location) && !waiting.has(location))) {
      // A database without blobs probably belongs to another store, so nothing is repaired.
      const repaired = watch.repair && !isEmpty
      if (repaired) await db.tx((tx) => addTrash(tx, file, due))
      const detail = `${file.size} bytes, last changed at ${new Date(file.changed).toISOString()}`
      watch.found({ check: 'orphans', problem: 'content belongs to nothing', subject: file.location, detail, repaired })
    }
    watch.examined('orphans', files.length)
  }
  let some: Stored[] = []
  for await (const file of blobs.list()) {
    if (file.changed < before) some.push(file)
    if (some.length < page) continue
    await look(some)
    some = []
  }
  await look(some)
}
