import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Waiting } from './deliveries.model.ts'
import { SubjectQueues, subjectQueueRows } from './subject-queues.ts'

let lastId = 0
const row = (subject: string, more: Partial<Waiting> = {}): Waiting => {
  const id = ++lastId
  return { id, position: 0, event: id, subject, attempts: 0, nextTime: '', createTime: '', ...more }
}
const rows = (subject: string, count: number) => Array.from({ length: count }, () => row(subject))
const ids = (taken: readonly { rows: Waiting[] }[]) => taken.map((subjectQueue) => subjectQueue.rows[0]!.id)

test('each subject sends one event at a time in order, and different subjects send in parallel', () => {
  const subjectQueues = new SubjectQueues()
  const [a1, b1, a2] = [row('a'), row('b'), row('a')]
  subjectQueues.add([a1, b1, a2], 0)
  const first = subjectQueues.take(9, 0)
  assert.deepEqual(ids(first), [a1.id, b1.id])
  assert.deepEqual(subjectQueues.take(9, 0), [])
  subjectQueues.done(first[0]!, 0)
  assert.deepEqual(ids(subjectQueues.take(9, 0)), [a2.id])
})

test('retries a failed event when due, and later events of its subject wait', () => {
  const subjectQueues = new SubjectQueues()
  const [bad, behind] = [row('a'), row('a')]
  subjectQueues.add([bad, behind, row('b', { nextTime: new Date(70).toISOString() })], 0)
  const [subjectQueue] = subjectQueues.take(9, 0)
  subjectQueues.retry(subjectQueue!, 50, 0)
  assert.deepEqual(subjectQueues.take(9, 49), [])
  assert.equal(subjectQueues.nextDue(), 50)
  const [again] = subjectQueues.take(9, 50)
  assert.deepEqual([again!.rows[0]!.id, again!.rows[0]!.attempts], [bad.id, 1])
  subjectQueues.done(again!, 50)
  assert.deepEqual(ids(subjectQueues.take(9, 50)), [behind.id])
  assert.equal(subjectQueues.nextDue(), 70)
  subjectQueues.wake(51)
  assert.equal(subjectQueues.take(9, 51).length, 1)
})

test('keeps only the start of a long subject queue, and reads the rest later, in order and once', () => {
  const subjectQueues = new SubjectQueues()
  const all = rows('a', 2 * subjectQueueRows + 5)
  subjectQueues.add(all, 0)
  const sent: number[] = []
  for (let left = all.length; left > 0; left--) {
    for (const subjectQueue of subjectQueues.hungry()) {
      const rest = all.filter(({ id }) => id > subjectQueue.last).slice(0, subjectQueueRows)
      subjectQueues.feed(subjectQueue, rest, rest.length === subjectQueueRows, 0)
    }
    const [subjectQueue] = subjectQueues.take(9, 0)
    sent.push(subjectQueue!.rows[0]!.id)
    subjectQueues.done(subjectQueue!, 0)
  }
  assert.deepEqual(
    sent,
    all.map(({ id }) => id),
  )
  assert.deepEqual([subjectQueues.size, subjectQueues.hungry(), subjectQueues.nextDue()], [0, [], undefined])
})

test('an event added to a shortened subject queue waits for the events before it', () => {
  const subjectQueues = new SubjectQueues()
  const all = rows('a', subjectQueueRows + 5)
  subjectQueues.add(all, 0)
  const sent: number[] = []
  const sendOne = () => {
    const [subjectQueue] = subjectQueues.take(1, 0)
    sent.push(subjectQueue!.rows[0]!.id)
    subjectQueues.done(subjectQueue!, 0)
  }
  for (let i = 0; i < 10; i++) sendOne()
  const late = row('a')
  subjectQueues.add([late], 0)
  for (let i = 10; i < subjectQueueRows; i++) sendOne()
  const [hungry] = subjectQueues.hungry()
  subjectQueues.feed(
    hungry!,
    [...all, late].filter(({ id }) => id > hungry!.last),
    false,
    0,
  )
  for (let i = 0; i < 6; i++) sendOne()
  assert.deepEqual(
    sent,
    [...all, late].map(({ id }) => id),
  )
})

test('removes a subject queue without remaining rows', () => {
  const subjectQueues = new SubjectQueues()
  subjectQueues.add(rows('a', subjectQueueRows + 1), 0)
  for (let i = 0; i < subjectQueueRows; i++) subjectQueues.done(subjectQueues.take(1, 0)[0]!, 0)
  const [hungry] = subjectQueues.hungry()
  subjectQueues.feed(hungry!, [], false, 0)
  assert.deepEqual([subjectQueues.size, subjectQueues.hungry()], [0, []])
})

test('tests a failing sink with the row that was tried least, due or not', () => {
  const subjectQueues = new SubjectQueues()
  const [often, once, never] = [
    row('a', { attempts: 5 }),
    row('b', { attempts: 1, nextTime: new Date(1e6).toISOString() }),
    row('c', { nextTime: new Date(1e6).toISOString() }),
  ]
  subjectQueues.add([often, once, never], 0)
  assert.deepEqual(
    [...ids(subjectQueues.takeProbe(0)), ...ids(subjectQueues.takeProbe(0)), ...ids(subjectQueues.takeProbe(0))],
    [never.id, once.id, often.id],
  )
  assert.deepEqual(subjectQueues.takeProbe(0), [])
})
