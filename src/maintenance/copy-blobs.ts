// Copies the blobs of a database from one blob store to another. The blobs keep their names, so no row changes. Servers keep
// using the first store during the copy. A repeated copy skips blobs that are already copied.

import { createHash, randomUUID } from 'node:crypto'
import { type Blobs, ContentMissing, type Located, type StoredCheckpoint } from '#blobs/blobs.ts'
import { openBlobs } from '#blobs/open.ts'
import type { Config } from '#config.ts'
import { readFact, writeFact } from '#db/facts.ts'
import type { Db, Tx } from '#db/sql.ts'
import { contentsAfter, locationIsKnown, type StoredContent } from '#domains/registry/blobs/locations.store.ts'
import { algorithmOf } from '#lib/digest.ts'
import { eachAtOnce } from '#lib/scheduling/each-at-once.ts'
import { parseCheckpoint } from '#lib/tlog/checkpoint.ts'
import { openExisting } from '#open-database.ts'

export type Copied = {
  contents: number
  bytes: number
  /** Number of contents that the second store already had. */
  there: number
  /** Locations whose content is missing in the first store, or has the wrong digest. */
  damaged: string[]
}

const page = 500
/** Number of contents that are copied at the same time. */
const atOnce = 4

/** Error for two stores with the same id: they are the same store, or another program has copied one to the other. */
const sameId =
  'nothing was copied, because both stores have the same ID; if they are different stores, remove pinfold-id from the second one'

/**
 * Throws if one of the stores does not belong to this database. Calls `report` with the progress. The second store gets its own
 * id at the beginning, so no server mistakes it for the first store.
 */
export async function copyBlobs(
  db: Db,
  from: Blobs,
  to: Blobs,
  report: (copied: Copied) => void = () => {},
): Promise<Copied> {
  const database = await readFact(db, 'database_id')
  const [id, owner] = idsOf(await from.readId())
  if (id === undefined || owner !== database || id !== (await readFact(db, 'blob_folder_id'))) {
    throw new Error('nothing was copied, because the first store does not belong to this database')
  }
  const [other, otherOwner] = idsOf((await to.readId()) ?? (await to.keepId(`${randomUUID()} ${database}`)))
  if (otherOwner !== database)
    throw new Error('nothing was copied, because the second store belongs to another database')
  if (other === id) throw new Error(sameId)
  await copyCheckpoints(from, to)
  const isWanted = (location: string) => locationIsKnown(db, location)
  return copyContents((after, most) => contentsAfter(db, after, most), { isWanted, from, to, report })
}

type Copy = {
  /** Returns false if missing content was deleted during the copy, and so is no damage. */
  isWanted(location: string): Promise<boolean>
  from: Blobs
  to: Blobs
  report?: (copied: Copied) => void
}

/** Copies the contents that `contents` returns, page by page in the order of their locations. */
export async function copyContents(
  contents: (after: string, most: number) => Promise<StoredContent[]>,
  { isWanted, from, to, report = () => {} }: Copy,
): Promise<Copied> {
  const copied: Copied = { contents: 0, bytes: 0, there: 0, damaged: [] }
  for (let after = ''; ; ) {
    const some = await contents(after, page)
    await eachAtOnce(atOnce, some, async (content) => {
      await copyOne({ isWanted, from, to }, content, copied)
      report(copied)
    })
    if (some.length < page) return copied
    after = some.at(-1)!.location
  }
}

/**
 * Copies the checkpoints of all transparency logs, including ended logs. Does not overwrite a checkpoint of a larger log in the
 * second store, since a client may already have that checkpoint.
 */
export async function copyCheckpoints({ checkpoints: from }: Blobs, { checkpoints: to }: Blobs): Promise<void> {
  const names = await Array.fromAsync(from.list())
  await eachAtOnce(atOnce, names, async (name) => {
    const source = await from.read(name)
    if (!source) return
    for (let known = await to.read(name); ; known = await to.read(name)) {
      if (known && (known.text === source.text || sizeOf(known) > sizeOf(source))) return
      if ((await to.write(name, source.text, known?.version)) !== undefined) return
    }
  })
}

const sizeOf = ({ text }: StoredCheckpoint): number => parseCheckpoint(text)?.size ?? 0

/** Makes a completely copied store the store of the database. The transaction ensures that no server runs or starts meanwhile. */
export async function switchBlobStore(tx: Tx, to: Blobs): Promise<void> {
  const [id, owner] = idsOf(await to.readId())
  if (id === undefined || owner !== (await readFact(tx, 'database_id'))) throw new Error(sameId)
  await writeFact(tx, 'blob_folder_id', id)
}

const idsOf = (text: string | undefined): (string | undefined)[] => text?.split(' ') ?? []

async function copyOne({ isWanted, from, to }: Copy, content: StoredContent, copied: Copied): Promise<void> {
  const { location, size } = content
  if (await to.has(content)) {
    copied.there++
    return
  }
  const isWhole = await copyContent(from, to, content).catch((error: unknown) => {
    if (!(error instanceof ContentMissing)) throw error
    return false
  })
  if (isWhole) {
    copied.contents++
    copied.bytes += size
  } else if (await isWanted(location)) copied.damaged.push(location)
}

/** Returns `false` if the content does not have its digest. */
async function copyContent(from: Blobs, to: Blobs, { location, size, digest }: StoredContent): Promise<boolean> {
  const content = await from.read({ location, size } satisfies Located)
  const hash = digest === '' ? undefined : createHash(algorithmOf(digest))
  const part = await to.beginAt(location, size)
  try {
    let copied = 0
    for await (const chunk of content.stream() as AsyncIterable<Buffer>) {
      hash?.update(chunk)
      copied += chunk.length
      await part.write([chunk])
    }
    const found = hash && `${algorithmOf(digest)}:${hash.digest('hex')}`
    if (copied === size && (!found || found === digest)) {
      await part.finish(/^sha256:(.*)$/.exec(digest)?.[1])
      return true
    }
  } catch (error) {
    await part.discard()
    throw error
  }
  await part.discard()
  return false
}

/** Opens the database, the store of the settings, and the store that `to` names. */
export async function openCopy(config: Config, to: string) {
  await using opening = new AsyncDisposableStack()
  const { db } = opening.adopt(await openExisting(config), (open) => open.close())
  const store = async (location: string) =>
    opening.adopt(await openBlobs(location, config.data, { env: config.aws }), (one) => one.close())
  const stores = { from: await store(config.blobs), to: await store(to) }
  const opened = opening.move()
  return { db, ...stores, close: () => opened.disposeAsync() }
}
