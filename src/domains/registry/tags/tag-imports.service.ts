// Imports of tag histories. An import only adds rows that are later than the last row of a tag.

import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emitEach } from '#domains/outbox/emit.ts'
import { digestPattern } from '#lib/digest.ts'
import { type FieldViolation, failedPrecondition, notFound, refuseIfAny } from '#lib/errors.ts'
import { rootOf } from '#lib/uid.ts'
import { inRepo } from '../blobs/blobs.store.ts'
import { repoType } from '../repos/repos.model.ts'
import { lockRepoRow } from '../repos/repos.store.ts'
import * as history from './tag-history.store.ts'
import { appendPastMoves } from './tag-moves.service.ts'
import { type Tag, type TagRepo, tagFields, toTagResource } from './tags.model.ts'

export type ImportedRecord = { time: string; digest: string }
/** Records are ordered with the oldest first. */
export type ImportedTag = { name: string; deprecated: boolean; records: readonly ImportedRecord[] }
export type ImportCounts = { tagsCreated: number; recordsCreated: number; recordsUnchanged: number }

const maxTags = 1000
const maxRecords = 10_000
/** Options for the transaction of an import. SQLite keeps temporary data on disk, since an import changes thousands of pages. */
const ofManyRecords = { ...inRepo, aside: 'disk' } as const

/** Imports everything or nothing, with an event for each tag whose digest changes. Repeating an import changes nothing. */
export async function importTagHistory(call: Call, uid: string, tags: readonly ImportedTag[]): Promise<ImportCounts> {
  checkTags(tags, call.now)
  const counts = await call.app.db.tx(async (tx) => {
    const repo = await lockRepoRow(tx, uid, 'alone')
    if (!repo) throw notFound(repoType, uid)
    for (const mayChangeTags of call.app.hooks.mayChangeTags) await mayChangeTags(tx, uid)
    const total: ImportCounts = { tagsCreated: 0, recordsCreated: 0, recordsUnchanged: 0 }
    const moved: Tag[] = []
    for (const tag of tags) {
      const added = await importTag(tx, call, repo, tag)
      total.tagsCreated += added.made ? 1 : 0
      total.recordsCreated += added.records
      total.recordsUnchanged += tag.records.length - added.records
      if (added.tag) moved.push(added.tag)
    }
    const group = rootOf(uid)
    const inputs = moved.map((tag) => ({ subject: tag.uid, group, resource: toTagResource(tag) }))
    await emitEach(tx, call, 'registry.tag.created', inputs)
    return total
  }, ofManyRecords)
  call.log.info('tag history imported', { uid, ...counts })
  return counts
}

type Added = { tag?: Tag; made: boolean; records: number }

async function importTag(tx: Tx, call: Call, repo: TagRepo, imported: ImportedTag): Promise<Added> {
  const { name } = imported
  const last = await history.lastTime(tx, repo.ledger, name)
  const fresh: ImportedRecord[] = []
  for (const record of imported.records) {
    const known = fresh.length > 0 || last === '' ? '' : await history.digestAt(tx, repo.ledger, name, record.time)
    if (known === record.digest) continue
    if (record.time <= last) throw createConflict(name, record)
    fresh.push(record)
  }
  if (fresh.length === 0) return { made: false, records: 0 }
  const past = { name, moves: fresh, deprecated: imported.deprecated, actor: call.caller.uid }
  const added = await appendPastMoves(tx, call, repo, past)
  return { ...added, records: fresh.length }
}

function createConflict(tag: string, { time, digest }: ImportedRecord) {
  return failedPrecondition({
    type: 'TAG_HISTORY_CONFLICT',
    subject: tag,
    description: `the history of the tag ${tag} has later records, so ${digest} at ${time} cannot be added before them`,
  })
}

function checkTags(tags: readonly ImportedTag[], now: string): void {
  const problems: FieldViolation[] = []
  const say = (field: string, description: string) => problems.push({ field, description })
  const total = tags.reduce((sum, { records }) => sum + records.length, 0)
  if (tags.length === 0) say('tags', 'is required')
  if (tags.length > maxTags) say('tags', `must have at most ${maxTags} tags`)
  if (total > maxRecords) say('tags', `must have at most ${maxRecords} records`)
  refuseIfAny(problems)

  const names = new Set<string>()
  for (const [i, { name, records }] of tags.entries()) {
    if (!tagFields.name.pattern.test(name)) say(`tags[${i}].name`, `name must match "${tagFields.name.pattern.source}"`)
    if (names.has(name)) say(`tags[${i}].name`, 'is listed twice')
    names.add(name)
    if (records.length === 0) say(`tags[${i}].records`, 'is required')
    for (const [j, { time, digest }] of records.entries()) {
      const before = records[j - 1]
      const at = `tags[${i}].records[${j}]`
      if (!digestPattern.test(digest)) say(`${at}.digest`, `digest must match "${digestPattern.source}"`)
      else if (digest === before?.digest) say(`${at}.digest`, 'must be different from the previous record')
      if (time === '') say(`${at}.time`, 'is required')
      else if (before && time <= before.time) say(`${at}.time`, 'must be later than the previous record')
      else if (time > now) say(`${at}.time`, 'must not be in the future')
    }
  }
  refuseIfAny(problems)
}
