// Verifies that each tag has the digest of its last row in the tag history, and that the rows of a tag are consistent.
import type { Db } from '#db/sql.ts'
import { operatorUid } from '#lib/uid.ts'
import { inRepo, lockRepo } from '../blobs/blobs.store.ts'
import { eventNumbers } from '../tags/tag-history.model.ts'
import { alignTagHistory, restoreTagFromHistory } from '../tags/tag-moves.service.ts'
import { findTag } from '../tags/tags.store.ts'
import type { Problem, Watch } from './verification.model.ts'
import * as store from './verification.store.ts'

const page = 1000
/** Most rows between two pages: a page of rows, and rows that are committed meanwhile. */
const mostBetween = 2 * page
/** Actor and source of rows that are added as a repair. */
const by = { actor: operatorUid, source: 'import' } as const
const start = { ledger: 0, tag: '', time: '' }

export async function verifyTags(db: Db, now: () => string, watch: Watch): Promise<void> {
  for (let after = 0; ; ) {
    const tags = await store.tagRecordsAfter(db, after, page)
    for (const tag of tags) {
      const problem = problemOf(tag)
      if (!problem) continue
      const repaired = watch.repair && (await recordTag(db, tag.id, now()))
      const detail = `${tag.name} of ${tag.repoUid} points to ${tag.digest || 'nothing'}, but the last record of its history is ${describeLast(tag)}`
      watch.found({ check: 'tags', problem, subject: tag.uid, detail, repaired })
    }
    watch.examined('tags', tags.length)
    if (tags.length < page) return
    after = tags.at(-1)!.id
  }
}

function problemOf({ digest, assignTime, lastTime, lastEvent, lastDigest }: store.TagRecord): Problem | undefined {
  const isOver = lastTime === '' || lastEvent === eventNumbers.deleted
  if (digest === '') return isOver ? undefined : 'ledger says something else'
  if (lastTime === '') return 'ledger does not know the tag'
  const agrees = !isOver && lastDigest === digest && lastTime === assignTime
  return agrees ? undefined : 'ledger says something else'
}

function describeLast({ lastTime, lastEvent, lastDigest }: store.TagRecord): string {
  if (lastTime === '') return 'none'
  return lastEvent === eventNumbers.deleted ? `its deletion at ${lastTime}` : `${lastDigest} at ${lastTime}`
}

/** Adds a row with the digest of the tag, since clients are served this digest. Existing rows are never changed. */
function recordTag(db: Db, id: number, now: string): Promise<boolean> {
  return db.tx(async (tx) => {
    const found = await store.tagRecordOf(tx, id)
    if (!found || !(await lockRepo(tx, { id: found.repo }, 'alone'))) return false
    // The tag may have been reassigned while the transaction waited for the lock.
    const record = (await store.tagRecordOf(tx, id))!
    const tag = await findTag(tx, found.uid)
    if (!tag || !problemOf(record)) return false
    const repo = { id: record.repo, uid: record.repoUid, ledger: record.ledger }
    const isOver = record.lastTime === '' || record.lastEvent === eventNumbers.deleted
    await alignTagHistory(
      tx,
      repo,
      tag,
      { time: record.lastTime, digest: isOver ? '' : record.lastDigest },
      { now, ...by },
    )
    return true
  }, inRepo)
}

export async function verifyLedger(db: Db, now: () => string, watch: Watch): Promise<void> {
  let before: store.LedgerRow | undefined
  for (let after: store.LedgerKey = start; ; ) {
    const rows = await store.ledgerRowsAfter(db, after, page)
    for (const row of rows) {
      const isSame = before?.ledger === row.ledger && before.tag === row.tag
      const was = isSame && before!.event !== eventNumbers.deleted ? before!.digest : ''
      if (row.previousDigest !== was) {
        const detail = `${row.tag} at ${row.time} has the previous digest ${row.previousDigest || 'none'}, but it was ${was || 'none'}`
        const subject = `${row.ledger} ${row.tag} ${row.time}`
        watch.found({ check: 'ledger', problem: 'records do not follow each other', subject, detail, repaired: false })
      }
      before = row
    }
    watch.examined('ledger', rows.length)
    const last = rows.at(-1)
    if (!last) return
    for (const missing of await store.missingTags(db, after, last, mostBetween)) {
      const repaired = watch.repair && (await restoreTag(db, missing, now()))
      const detail = `${missing.tag} of ${missing.repoUid} should point to ${missing.digest}`
      const subject = `${missing.ledger} ${missing.tag} ${missing.time}`
      watch.found({ check: 'ledger', problem: 'tag is missing', subject, detail, repaired })
    }
    if (rows.length < page) return
    after = last
  }
}

function restoreTag(db: Db, missing: store.MissingTag, now: string): Promise<boolean> {
  return db.tx(async (tx) => {
    const { repo: id, repoUid: uid, ledger, tag: name, time } = missing
    if (!(await lockRepo(tx, { id }, 'alone'))) return false
    const [still] = await store.missingTags(tx, { ledger, tag: name, time: '' }, missing, 1)
    if (!still) return false
    const repo = { id, uid, ledger }
    await restoreTagFromHistory(tx, repo, { name, time, digest: still.digest }, still.canStand === 1, { now, ...by })
    return true
  }, inRepo)
}
