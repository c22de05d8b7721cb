// Copies the blobs of a database from one blob store to another, under the same names, so that no row changes. Servers use the
// first store meanwhile. A repeated copy skips blobs that are already copied.

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
  /** Were there already. */
  there: number
  /** Locations that are missing in the first store, or have other content than they should. */
  damaged: string[]
}

const page = 500
/** Number of contents that are copied at the same time. */
const atOnce = 4

/** The two stores are the same, or one is a copy of the other by other means: the id is the same for both. */
const sameId =
  'nothing was copied, because both stores have the same ID; if they are different stores, remove pinfold-id from the second one'

/**
 * Throws if the stores do not belong to this database. Calls `report` with the progress. The second store has an id of its own
 * from the beginning, so that no server takes it for the first.
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
  /** Asked of a content that is missing, which may have been deleted meanwhile. */
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
 * Copies the checkpoints of the transparency logs, including ended logs. Keeps a checkpoint of a larger log in the second store,
 * since a client may have seen its signature.
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

/** Makes a complete store the store of the database, in a transaction during which no server runs or starts. */
export async function switchBlobs(tx: Tx, to: Blobs): Promise<void> {
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

/** `false` when it does not have its digest. */
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

/** Opens the store of the settings and the one that `to` names, with their database. */
export async function openCopy(config: Config, to: string) {
  await using opening = new AsyncDisposableStack()
  const { db } = opening.adopt(await openExisting(config), (open) => open.close())
  const store = async (place: string) =>
    opening.adopt(await openBlobs(place, config.data, { env: config.aws }), (one) => one.close())
  const stores = { from: await store(config.blobs), to: await store(to) }
  const opened = opening.move()
  return { db, ...stores, close: () => opened.disposeAsync() }
}
