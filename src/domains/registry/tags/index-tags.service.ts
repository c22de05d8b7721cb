// Builds the name indexes of large repositories and keeps them up to date, one segment of names after the other. Each transaction
// that creates tags locks the repository. So tags of one repository become visible in the order of their numbers.
import { setImmediate as rest, setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { inRepo, lockRepo } from '../blobs/blobs.store.ts'
import { segmentOf, segmentSize } from './tag-parts.model.ts'
import * as store from './tag-parts.store.ts'
import { everyShape } from './tags.model.ts'
import { countTags } from './tags.store.ts'

const numbersAtOnce = 20_000
/**
 * Number of tags that are read again in each run. A tag of one repository may become visible after a tag of another repository
 * with a higher number.
 */
const lateNumbers = 1000

/**
 * Examines the tags created since the last run and marks the repositories whose index needs a segment. Returns the number of
 * marked repositories.
 */
export async function noteDue({ db }: App, lease: Lease): Promise<number> {
  let due = 0
  for (let late = lateNumbers; ; late = 0) {
    lease.check()
    const seen = await store.lastIndexedNumber(db)
    if (late > 0 && (await store.lastNumber(db)) === seen) return due
    const repos = await store.reposBeyond(db, Math.max(0, seen - late), numbersAtOnce)
    const last = repos.length === 0 ? await store.lastNumber(db) : Math.max(...repos.map((one) => Number(one.last)))
    // `last` is lower than `seen` if the newest tags were deleted and their numbers were reused.
    if (last === seen || (repos.length === 0 && last > seen)) return due
    const large: number[] = []
    for (const { repo } of repos) if (await hasSegmentToGet(db, repo)) large.push(repo)
    await lease.tx(async (tx) => {
      for (const repo of large) await noteDueRepo(tx, repo)
      await store.setLastIndexedNumber(tx, last)
    }, inRepo)
    due += large.length
  }
}

async function hasSegmentToGet(db: App['db'], repo: number): Promise<boolean> {
  const index = await store.newestIndexOf(db, repo)
  return (await store.countBeyond(db, repo, index?.upTo ?? 0, segmentSize)) === segmentSize
}

async function noteDueRepo(tx: Tx, repo: number): Promise<void> {
  if (!(await lockRepo(tx, { id: repo }, 'shared'))) return
  const index = await store.newestIndexOf(tx, repo)
  if (index) await store.setDue(tx, index.id, true)
  else await store.insertIndex(tx, repo)
}

/** Most index entries in one transaction. */
const partsAtOnce = 400
/** A power cut may undo writes of index entries without harm. The transaction that ends the segment makes them durable. */
const later = { ...inRepo, durability: 'later' } as const
const pauseMs = 20

/** Adds one segment. Returns the number of added names. */
export async function addSegment({ db }: App, lease: Lease, index: store.DueIndex): Promise<number> {
  const tags = await store.namesBeyond(db, index.repo, index.upTo, segmentSize)
  if (tags.length < segmentSize) {
    await endDue(db, lease, index)
    return 0
  }
  const segment = await segmentOf(
    tags.map(({ name }) => name),
    rest,
  )
  for (const parts of chunks(segment.parts, partsAtOnce)) {
    lease.check()
    await lease.tx((tx) => store.insertParts(tx, index, parts), later)
    await sleep(pauseMs)
  }
  return lease.tx(async (tx) => {
    if (!(await lockRepo(tx, { id: index.repo }, 'shared'))) return 0
    await store.insertNames(tx, index, segment)
    return store.endSegment(tx, index, tags.at(-1)!)
  }, inRepo)
}

/** Rebuilds an index that has far more names than there are tags. The old index is used until the new one is ready. */
async function endDue(db: App['db'], lease: Lease, { id, repo, uid, segments }: store.DueIndex): Promise<void> {
  const tags = await countTags(db, [{ below: uid }], { name: '', digest: '', updatedSince: '', asked: everyShape })
  const outgrown = segments * segmentSize > 2 * (tags + segmentSize)
  await lease.tx(async (tx) => {
    if (!(await lockRepo(tx, { id: repo }, 'shared'))) return
    await store.setDue(tx, id, false)
    const isNew = (await store.leaveOlder(tx, repo, id)) > 0
    if (outgrown && !isNew) await store.insertIndex(tx, repo)
  }, inRepo)
}
