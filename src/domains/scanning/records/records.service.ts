// Stores vulnerability records of data sources. Queues packages for comparison if their advisory entries have changed.

import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { type FieldViolation, refuseIfAny } from '#lib/errors.ts'
import { packageItem } from '../queue/queue.model.ts'
import { queueMatches } from '../queue/queue.store.ts'
import {
  type PutCounts,
  recordLimits,
  type SourceEnd,
  type SourceFacts,
  type SourceRecord,
  type SourceRun,
} from './records.model.ts'
import * as store from './records.store.ts'

export type * from './records.model.ts'
export type { StoredSource } from './records.store.ts'

/** Limits of one transaction on records and on their affected packages. A single record can exceed the limit on packages. */
const perSlice = { records: 100, affected: 2000 }
/** Limit on the packages that are compared again because a record of the same vulnerability has another severity. */
const maxNamed = 10_000

/** Begins to read a data source. The records of earlier runs stay until this run replaces them. */
export async function beginSource({ app }: Pick<Work, 'app'>, facts: SourceFacts): Promise<SourceRun> {
  const opened = await app.db.tx((tx) => store.openSource(tx, facts, app.clock().toISOString()))
  return { sourceNo: opened.sourceNo, name: opened.name, generation: opened.generation }
}

/**
 * Replaces these records of the source in transactions of at most 100 records. Queues the affected packages for comparison.
 * Throws INVALID_ARGUMENT if a record exceeds the limits. Each record must occur once.
 */
export async function putRecords(
  { app }: Pick<Work, 'app'>,
  run: SourceRun,
  records: readonly SourceRecord[],
): Promise<PutCounts> {
  refuseIfAny(records.flatMap(problemsOf))
  const counts: PutCounts = { created: 0, updated: 0, unchanged: 0 }
  for (const slice of slicesOf(records)) {
    const added = slice.map((record) => ({ record, organization: '', hash: hashOf(record), core: coreOf(record) }))
    const now = app.clock().toISOString()
    const put = await app.db.tx(async (tx) => {
      await store.noteEcosystems(tx, { ...run, now }, slice)
      return putSlice(tx, { ...run, now }, added)
    })
    for (const member of ['created', 'updated', 'unchanged'] as const) counts[member] += put[member]
    await setImmediate()
  }
  return counts
}

/** Ends the run of a data source. After a complete run, withdraws the records that the run did not contain. */
export async function finishSource(
  { app, log }: Pick<Work, 'app' | 'log'>,
  run: SourceRun,
  end: SourceEnd,
): Promise<{ withdrawn: number }> {
  let withdrawn = 0
  for (let found = 1; end.complete && end.error === '' && found > 0; withdrawn += found) {
    const now = app.clock().toISOString()
    found = await app.db.tx(async (tx) => {
      const gone = await store.listOutdated(tx, run.sourceNo, run.generation, perSlice.records)
      await retire(tx, gone, now)
      return gone.length
    })
    await setImmediate()
  }
  const error = end.error.slice(0, 2000)
  await app.db.tx(async (tx) => {
    if (end.complete && error === '') await store.endEcosystems(tx, run.sourceNo, run.generation)
    await store.closeSource(tx, run.sourceNo, { ...end, error }, app.clock().toISOString())
  })
  log.info('vulnerability data source read', { source: run.name, withdrawn, failed: error !== '' })
  return { withdrawn }
}

/** Withdraws records that the source no longer has. */
export async function retire(tx: Tx, gone: readonly store.CurrentRecord[], now: string): Promise<void> {
  if (gone.length === 0) return
  const numbers = gone.map(({ recordNo }) => recordNo)
  const names = await store.ratingNames(tx, numbers)
  const touched = await store.retireRecords(tx, numbers, now)
  touched.push(...(await ratedBy(tx, names)))
  await queueTouched(tx, touched, now)
}

/** Creates or updates records in the transaction of the caller. */
export async function putSlice(tx: Tx, run: store.RunOf, given: readonly store.NewRecord[]): Promise<PutCounts> {
  const ids = given.map(({ record }) => record.id)
  const known = new Map((await store.findCurrent(tx, run.sourceNo, ids)).map((one) => [one.id, one]))
  const isSame = ({ record, hash: now }: store.NewRecord) => known.get(record.id)?.hash === now
  const same = given.filter(isSame)
  await store.renewRecords(
    tx,
    same.map(({ record }) => known.get(record.id)!.recordNo),
    run.generation,
  )
  const edits = given.filter((one) => !isSame(one) && one.core && known.get(one.record.id)?.core === one.core)
  for (const one of edits) await store.editRecord(tx, run, known.get(one.record.id)!.recordNo, one)
  const isEdit = new Set(edits)
  const changed = given.filter((one) => !isSame(one) && !isEdit.has(one))
  const before = changed.flatMap(({ record }) => known.get(record.id) ?? [])
  const numbers = before.map(({ recordNo }) => recordNo)
  const ratedBefore = await store.ratingNames(tx, numbers)
  const touched = await store.retireRecords(tx, numbers, run.now)
  await store.insertRecords(tx, run, changed)
  for (const { record, organization } of changed) {
    if (record.withdrawTime !== '') continue
    touched.push(...record.affected.map(({ ecosystem, name }) => ({ ecosystem, name, organization })))
  }
  const rating = changed.filter(({ record }) => record.severities.length > 0)
  const names = rating.flatMap(({ record }) => [record.id, ...record.aliases, ...record.upstream])
  touched.push(...(await ratedBy(tx, [...ratedBefore, ...names])))
  await queueTouched(tx, touched, run.now)
  const updated = before.length + edits.length
  return { created: changed.length - before.length, updated, unchanged: same.length }
}

/** Packages in other records of the same vulnerabilities. Their severity can come from the changed records. */
async function ratedBy(tx: Tx, names: readonly string[]): Promise<store.Touched[]> {
  const touched: store.Touched[] = []
  for (const some of chunks([...new Set(names)], 400)) {
    if (touched.length < maxNamed) touched.push(...(await store.packagesNamed(tx, some, maxNamed - touched.length)))
  }
  return touched
}

/**
 * Queues changed packages that some image contains. A new package is not queued here, because adding the package also compares
 * it. Changes of an organization's own advisories are queued under that organization.
 */
async function queueTouched(tx: Tx, touched: readonly store.Touched[], now: string): Promise<void> {
  const used = await store.namesInUse(tx, [...new Set(touched.map(({ name }) => name))])
  for (const [organization, those] of Map.groupBy(touched, (one) => one.organization)) {
    const named = those.filter(({ name }) => used.has(name))
    const items = new Set(named.map(({ ecosystem, name }) => packageItem(ecosystem, name)))
    await queueMatches(
      tx,
      [...items].sort().map((item) => ({ kind: 'package', organization, item })),
      now,
    )
  }
}

/** Hash of the parts of a record that determine findings, their number and their severities. */
function coreOf({ summary: _, references: __, publishTime: ___, modifyTime: ____, ...record }: SourceRecord): string {
  return hash('sha256', JSON.stringify(record), 'base64url')
}

function hashOf({ modifyTime: _, ...record }: SourceRecord): string {
  return hash('sha256', JSON.stringify(record), 'base64url')
}

function slicesOf(records: readonly SourceRecord[]): SourceRecord[][] {
  const slices: SourceRecord[][] = []
  let affected = 0
  for (const record of records) {
    affected += record.affected.length
    const slice = slices.at(-1)
    if (slice && slice.length < perSlice.records && affected <= perSlice.affected) slice.push(record)
    else {
      slices.push([record])
      affected = record.affected.length
    }
  }
  return slices
}

function problemsOf(record: SourceRecord, i: number): FieldViolation[] {
  const over = (field: string, count: number, most: number): FieldViolation[] => {
    return count > most ? [{ field: `records[${i}].${field}`, description: `must have at most ${most} entries` }] : []
  }
  const long = (field: string, text: string, most: number): FieldViolation[] => {
    return text.length > most
      ? [{ field: `records[${i}].${field}`, description: `must be at most ${most} characters long` }]
      : []
  }
  const { affected, aliases, upstream, references } = record
  return [
    ...(record.id === '' ? [{ field: `records[${i}].id`, description: 'is required' }] : []),
    ...long('id', record.id, 256),
    ...long('summary', record.summary, 4096),
    ...[...aliases, ...upstream].flatMap((name) => long('aliases', name, 256)),
    ...over('aliases', aliases.length + upstream.length, recordLimits.names),
    ...over('references', references.length, recordLimits.references),
    ...over('affected', affected.length, recordLimits.affected),
    ...affected.flatMap(({ ranges, versions, ecosystem, name }, j) => [
      ...long(`affected[${j}].ecosystem`, ecosystem, 256),
      ...long(`affected[${j}].name`, name, 512),
      ...over(
        `affected[${j}].ranges`,
        ranges.reduce((sum, { events }) => sum + events.length, 0),
        recordLimits.events,
      ),
      ...over(`affected[${j}].versions`, versions.length, recordLimits.versions),
    ]),
  ]
}
