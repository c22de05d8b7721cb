// Makes the indexes of parts and keeps them up to date: which repos have so many tags that one needs it, and one segment after
// the other of their names. The tags of a repo are made one transaction after the other, in which it is locked, so that behind
// a tag that is seen there is none with a lower number still to come.
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
/** Of the tags of two repos one may be there later than the other and have the lower number. So many are looked at again. */
const lateNumbers = 1000

/** Looks at the tags that have come since the last time, and notes the repos that have a segment to get. */
export async function noteDue({ db }: App, lease: Lease): Promise<number> {
  let due = 0
  for (let late = lateNumbers; ; late = 0) {
    lease.check()
    const seen = await store.seenNumber(db)
    if (late > 0 && (await store.lastNumber(db)) === seen) return due
    const repos = await store.reposBeyond(db, Math.max(0, seen - late), numbersAtOnce)
    const last = repos.length === 0 ? await store.lastNumber(db) : Math.max(...repos.map((one) => Number(one.last)))
    // It is lower where the newest tags are gone and their numbers are given again.
    if (last === seen || (repos.length === 0 && last > seen)) return due
    const large: number[] = []
    for (const { repo } of repos) if (await hasSegmentToGet(db, repo)) large.push(repo)
    await lease.tx(async (tx) => {
      for (const repo of large) await noteDueRepo(tx, repo)
      await store.setSeenNumber(tx, last)
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

/** What one transaction writes. */
const partsAtOnce = 400
/** Nothing is lost with what a power cut undoes, and the end of the segment takes it along. */
const later = { ...inRepo, durability: 'later' } as const
const pauseMs = 20

/** Adds one segment; answers with how many were added. */
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

/** An index that has far more names than there are tags is made anew, and asked until the new one is ready. */
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
