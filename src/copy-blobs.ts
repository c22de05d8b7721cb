// Copies what a database has in one store of blobs to another, under the same names, so that no row changes. A server goes on
// with the first one meanwhile; what has been copied is not copied again.
import { createHash } from 'node:crypto'
import { type Blobs, ContentMissing, type Located } from './blobs/blobs.ts'
import { readFact } from './db/facts.ts'
import type { Db } from './db/sql.ts'
import { contentsAfter, locationIsKnown, type StoredContent } from './domains/registry/blobs/copies.store.ts'
import { algorithmOf } from './lib/digest.ts'

export type Copied = {
  contents: number
  bytes: number
  /** Were there already. */
  there: number
  /** Locations that are lost in the first store, or do not have the content that they should. */
  damaged: string[]
}

const page = 500
/** Contents on their way at once. */
const atOnce = 4

/** Throws when the stores are not of this database. `report` is called as it goes on. */
export async function copyBlobs(
  db: Db,
  from: Blobs,
  to: Blobs,
  report: (copied: Copied) => void = () => {},
): Promise<Copied> {
  const id = await from.readId()
  if (id === undefined || id.split(' ')[1] !== (await readFact(db, 'database_id'))) {
    throw new Error('the first store does not belong to this database')
  }
  const other = await to.readId()
  if (other !== undefined && other !== id) throw new Error('the second store belongs to another database')
  const copied: Copied = { contents: 0, bytes: 0, there: 0, damaged: [] }
  for (let after = ''; ; ) {
    const contents = await contentsAfter(db, after, page)
    const waiting = contents.values()
    const workers = Array.from({ length: atOnce }, async () => {
      for (const content of waiting) {
        await copyOne(db, from, to, content, copied)
        report(copied)
      }
    })
    await Promise.all(workers)
    if (contents.length < page) break
    after = contents.at(-1)!.location
  }
  // With the id, the second store can take the place of the first.
  if (copied.damaged.length === 0 && other === undefined) await to.keepId(id)
  return copied
}

async function copyOne(db: Db, from: Blobs, to: Blobs, content: StoredContent, copied: Copied): Promise<void> {
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
  } else if (await locationIsKnown(db, location)) copied.damaged.push(location)
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
