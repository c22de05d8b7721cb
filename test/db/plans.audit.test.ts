// Only the audit log grows forever. So each of its filters uses an index in time order, in each scope.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { compile, type Reader } from '#db/sql.ts'
import { lastEmpty } from '#domains/events/delivery/backlog.store.ts'
import { eventIdAt, eventsAfter, positionOf } from '#domains/events/stream/stream.store.ts'
import type { AuditFilter } from '#domains/outbox/audit.model.ts'
import { countEntries, deleteBefore, listEntries } from '#domains/outbox/audit.store.ts'
import type { Branch, Page } from '#lib/lists/paging.ts'
import { onPostgres, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'
import { plantTree } from '../support/tree.ts'

let pinfold: Pinfold
let group: string

before(async () => {
  pinfold = await startPinfold()
  group = (await plantTree(pinfold, { repos: 1, others: 10 }))['a/one']!
})
after(() => pinfold[Symbol.asyncDispose]())

const scopes = (): Record<string, Branch> => ({
  'below everything': { below: '/' },
  'below a group': { below: group },
  'children of a group': { childrenOf: group },
})
const none: AuditFilter = { actor: '', subject: '', type: '', since: '', until: '' }
const [actor, type] = ['c'.repeat(40), 'dev.pinfold.api.iam.group.created.v1']
const [since, until] = ['2026-01-01T00:00:00.000Z', '2026-12-31T00:00:00.000Z']

function* filters(): Generator<AuditFilter> {
  for (const one of [none, { ...none, actor }, { ...none, type }, { ...none, actor, type }]) {
    for (const times of [{}, { since }, { until }, { since, until }]) yield { ...one, ...times }
  }
}

function pageOf(desc: boolean, cursor: boolean): Page {
  const order = { field: 'createTime', column: 'create_time', desc }
  const after = cursor ? { value: '2026-06-01T00:00:00.000Z', uid: `${group}/5` } : undefined
  return { order, after, size: 50, skip: 0, binding: '' }
}

/** The list, its scope, and the time limits on both sides. */
function searched(low: boolean, high: boolean, cursor: 'none' | 'low' | 'high'): RegExp {
  if (onPostgres) {
    const bound = (on: boolean, row: boolean, sign: string) => (on ? `.*${row ? 'ROW\\(.*\\)' : 'value'} ${sign}` : '')
    return new RegExp(
      `Index Cond: (?=.*list =)(?=.*place =)(?=${bound(low, cursor === 'low', '>')})(?=${bound(high, cursor === 'high', '<')})`,
    )
  }
  const bound = (on: boolean, row: boolean, sign: string) =>
    on ? (row ? ` AND \\(value,uid\\)${sign}\\(\\?,\\?\\)` : ` AND value${sign}\\?`) : ''
  return new RegExp(
    `SEARCH k USING PRIMARY KEY \\(list=\\? AND place=\\?${bound(low, cursor === 'low', '>')}${bound(high, cursor === 'high', '<')}\\)`,
  )
}

test('lists and filters the audit log in time order from an index, in each scope', async () => {
  for (const [name, scope] of Object.entries(scopes())) {
    for (const filter of filters()) {
      for (const desc of [false, true]) {
        for (const cursor of [false, true]) {
          const [query] = await queriesOf((reader) => listEntries(reader, [scope], pageOf(desc, cursor), filter))
          const what = `audit log ${name} with ${JSON.stringify(filter)}${desc ? ' desc' : ''}${cursor ? ' from a cursor' : ''}`
          const low = filter.since !== '' || (cursor && !desc)
          const high = filter.until !== '' || (cursor && desc)
          await checkPlanOf(pinfold, query!, what, [searched(low, high, cursor ? (desc ? 'high' : 'low') : 'none')])
        }
      }
    }
  }
})

test('reads only the keys of entries that an unfiltered page skips', async () => {
  const looked = onPostgres
    ? /Nested Loop.*Limit.*list_keys_pkey/s
    : /SCAN found\n.*SEARCH t USING INTEGER PRIMARY KEY/s
  for (const [name, scope] of Object.entries(scopes())) {
    for (const desc of [false, true]) {
      const page = { ...pageOf(desc, false), skip: 1000 }
      const [query, ...more] = await queriesOf((reader) => listEntries(reader, [scope], page, none))
      assert.equal(more.length, 0)
      assert.match(await pinfold.app.db.plan(query!), looked, name)
    }
  }
})

test('finds entries about a subject by an index', async () => {
  for (const [name, scope] of Object.entries(scopes())) {
    for (const more of [{}, { actor }, { type }, { since, until }]) {
      const filter = { ...none, subject: group, ...more }
      const [query] = await queriesOf((reader) => listEntries(reader, [scope], pageOf(true, false), filter))
      await checkPlanOf(pinfold, query!, `${name} ${JSON.stringify(more)}`, [/audit_log_by_subject/])
    }
  }
})

test('counts matches of a filter from an index, up to the limit', async () => {
  for (const [name, scope] of Object.entries(scopes())) {
    for (const filter of filters()) {
      const [query, ...others] = await queriesOf((reader) => countEntries(reader, [scope], filter))
      assert.deepEqual(others, [])
      const what = `count of the audit log ${name} with ${JSON.stringify(filter)}`
      const filtered = Object.values(filter).some((value) => value !== '')
      const wanted = filtered ? [searched(filter.since !== '', filter.until !== '', 'none')] : []
      await checkPlanOf(pinfold, query!, what, wanted)
      assert.equal(/LIMIT/.test(compile(query!, '?')), filtered, what)
    }
  }
})

test('finds the oldest entries by an index', async () => {
  const tx = { run: async () => 0, shard: 0, engine: 'sqlite' as const, async meet() {}, after() {} }
  const [query] = await queriesOf((reader) => deleteBefore({ ...reader, ...tx }, until, 10))
  await checkPlanOf(pinfold, query!, 'the sweep', [searched(false, true, 'none')])
})

test('reads stream events in order from an index, and finds one by its id', async () => {
  const reads = [
    [(reader: Reader) => eventsAfter(reader, 5, 10), /events_outbox_by_position/],
    [(reader: Reader) => eventIdAt(reader, 5), /events_outbox_by_position/],
    [(reader: Reader) => lastEmpty(reader, 5, 10), /events_outbox_by_position/],
    [(reader: Reader) => positionOf(reader, 'x'), /events_outbox_by_uuid/],
  ] as const
  for (const [read, index] of reads) {
    const [query] = await queriesOf(read)
    await checkPlanOf(pinfold, query!, 'the stream', [index])
  }
})
