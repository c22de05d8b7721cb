// Queues can hold hundreds of thousands of deliveries, so the servers that send them read from indexes only.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { compile, type Reader, type Sql, type Tx } from '#db/sql.ts'
import * as behind from '#domains/events/delivery/backlog.store.ts'
import * as deliveries from '#domains/events/delivery/deliveries.store.ts'
import * as sending from '#domains/events/delivery/sending.store.ts'
import * as queues from '#domains/events/routing/queues.store.ts'
import * as routing from '#domains/events/routing/routing.store.ts'
import * as retention from '#domains/events/subscriptions/retention.store.ts'
import { onPostgres, type Pinfold, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const time = '2026-01-01T00:00:00.000Z'
const page = (desc: boolean) => ({
  order: { field: 'uid', column: 'uid', desc },
  after: undefined,
  size: 50,
  skip: 0,
  binding: '',
})

/** All queries, reading and writing. The first result is a row with which the code continues. */
async function statementsOf(work: (tx: Tx) => Promise<unknown>): Promise<Sql[]> {
  const found: Sql[] = []
  const row = { id: 1, subscription: 1, createTime: time, last: 1, position: 1 }
  const note =
    <T>(answer: T) =>
    async (query: Sql) => {
      found.push(query)
      return answer
    }
  const reader = { all: note([row]), get: note(row) } as unknown as Reader
  await work({ ...reader, run: note(0), shard: 0, engine: 'sqlite', async meet() {}, after() {} })
  return found
}

const works: Record<string, (tx: Tx) => Promise<unknown>> = {
  'whether anything is unrouted': routing.anyUnrouted,
  'the oldest unrouted events': (tx) => routing.unroutedEvents(tx, 200),
  'the subscribers of a group': (tx) => routing.subscribersAt(tx, ['a', 'b']),
  'what waits': (tx) => sending.scanWaiting(tx, 1, 5, 500),
  'what waits of a subject': (tx) => sending.scanSubject(tx, { subscription: 1, subject: 'a', after: 1, upTo: 9 }, 32),
  'where to send': (tx) => sending.findTarget(tx, 1, 'node'),
  'whether an attempt is stored': (tx) =>
    sending.isStored(tx, { delivery: 1, subscription: 1, event: 1, attemptTime: time }),
  'what to send': (tx) => sending.findPayloads(tx, [1, 2, 3]),
  'the queues with something to do': (tx) => queues.unservedQueues(tx, time),
  'when the next queue is due': queues.nextDueTime,
  'what is sent in order': (tx) => deliveries.listDeliveries(tx, { id: 1, uid: 'a' }, page(false), undefined, 7),
  'what is sent, newest first': (tx) => deliveries.listDeliveries(tx, { id: 1, uid: 'a' }, page(true), undefined, 7),
  'what was given up': (tx) => deliveries.listDeliveries(tx, { id: 1, uid: 'a' }, page(true), 2, undefined),
  'how much of a state': (tx) => deliveries.countDeliveries(tx, 1, 0),
  'how much there is': (tx) => deliveries.countDeliveries(tx, 1, undefined),
  'some deliveries': (tx) => deliveries.findDeliveries(tx, { id: 1, uid: 'a' }, [1, 2]),
  'the attempts of a delivery': (tx) => deliveries.attemptsOf(tx, 1, 100),
  'the settings of a subscription': (tx) => deliveries.findSettings(tx, 'a').catch(() => undefined),
  'where a time begins': (tx) => deliveries.positionBefore(tx, time),
  'events in their order': (tx) => deliveries.eventsAfter(tx, 10, 500),
  'pending deliveries of a subscription': (tx) => behind.countWaiting(tx, 1, 500),
  'pending deliveries of an organization': (tx) => behind.countPending(tx, 'a', 500),
  'deliveries above those that are kept': (tx) => retention.trimDeliveries(tx, 1, 500, 200),
  'what a queue that is behind gets next': (tx) => behind.eventsBetween(tx, { after: 1, upTo: 9, group: 'a' }, 250),
  'what a queue that is behind gets next of a subject': (tx) =>
    behind.eventsOfSubject(tx, { subject: 'b', after: 1, upTo: 9, group: 'a' }, 32),
  'which events go to a queue': (tx) => behind.findFollower(tx, 1, 'node'),
  'how far a queue has got': (tx) => behind.findProgress(tx, 1),
  'progress of a queue': (tx) =>
    behind.saveProgress(tx, 1, 'node', { position: 9, set: new Map(), removed: ['b'], isDone: false, isNews: true }),
  'old events': (tx) => retention.sweepEvents(tx, time, 200),
  'old deliveries': (tx) => retention.sweepDeliveries(tx, time, 200),
  'deliveries of nobody': (tx) => retention.sweepDeleted(tx, 200),
  'what a failing sink gives up': (tx) => sending.giveUpOlderThan(tx, 1, time, 500),
  'marks of what was delivered': (tx) => sending.markDelivered(tx, [1, 2, 3]),
}

/** Parts with a limited size, and the primary key, which SQLite reads in order without mentioning it in the plan. */
const bad = onPostgres
  ? /\bSeq Scan\b|\bSort\b/
  : /\bSCAN (?!d\b|oldest\b)(?!.* USING (?:COVERING )?INDEX)|TEMP B-TREE|AUTOMATIC/

for (const [what, work] of Object.entries(works)) {
  test(`${what}: uses an index`, async () => {
    const statements = await statementsOf(work)
    assert.ok(statements.length > 0)
    for (const statement of statements) {
      const text = compile(statement, '?')
      // PostgreSQL sorts a page of rows once more.
      if (onPostgres && /ORDER BY d\.id/.test(text)) continue
      if (!onPostgres && /FROM deliveries ORDER BY id LIMIT \?1\s*$/.test(text)) continue
      const plan = await pinfold.app.db.plan(statement)
      if (!plan.includes('One-Time Filter: false')) assert.doesNotMatch(plan, bad, `${text}\n${plan}`)
    }
  })
}
