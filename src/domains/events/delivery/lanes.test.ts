import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Waiting } from './deliveries.model.ts'
import { Lanes, laneRows } from './lanes.ts'

let lastId = 0
const row = (subject: string, more: Partial<Waiting> = {}): Waiting => {
  const id = ++lastId
  return { id, position: 0, event: id, subject, attempts: 0, nextTime: '', createTime: '', ...more }
}
const rows = (subject: string, count: number) => Array.from({ length: count }, () => row(subject))
const ids = (taken: readonly { rows: Waiting[] }[]) => taken.map((lane) => lane.rows[0]!.id)

test('each subject sends one event at a time in order, and different subjects send in parallel', () => {
  const lanes = new Lanes()
  const [a1, b1, a2] = [row('a'), row('b'), row('a')]
  lanes.add([a1, b1, a2], 0)
  const first = lanes.take(9, 0)
  assert.deepEqual(ids(first), [a1.id, b1.id])
  assert.deepEqual(lanes.take(9, 0), [])
  lanes.done(first[0]!, 0)
  assert.deepEqual(ids(lanes.take(9, 0)), [a2.id])
})

test('retries a failed event when due, and later events of its subject wait', () => {
  const lanes = new Lanes()
  const [bad, behind] = [row('a'), row('a')]
  lanes.add([bad, behind, row('b', { nextTime: new Date(70).toISOString() })], 0)
  const [lane] = lanes.take(9, 0)
  lanes.retry(lane!, 50, 0)
  assert.deepEqual(lanes.take(9, 49), [])
  assert.equal(lanes.nextDue(), 50)
  const [again] = lanes.take(9, 50)
  assert.deepEqual([again!.rows[0]!.id, again!.rows[0]!.attempts], [bad.id, 1])
  lanes.done(again!, 50)
  assert.deepEqual(ids(lanes.take(9, 50)), [behind.id])
  assert.equal(lanes.nextDue(), 70)
  lanes.wake(51)
  assert.equal(lanes.take(9, 51).length, 1)
})

test('keeps only the start of a long subject queue, and reads the rest later, in order and once', () => {
  const lanes = new Lanes()
  const all = rows('a', 2 * laneRows + 5)
  lanes.add(all, 0)
  const sent: number[] = []
  for (let left = all.length; left > 0; left--) {
    for (const lane of lanes.hungry()) {
      const rest = all.filter(({ id }) => id > lane.last).slice(0, laneRows)
      lanes.feed(lane, rest, rest.length === laneRows, 0)
    }
    const [lane] = lanes.take(9, 0)
    sent.push(lane!.rows[0]!.id)
    lanes.done(lane!, 0)
  }
  assert.deepEqual(
    sent,
    all.map(({ id }) => id),
  )
  assert.deepEqual([lanes.size, lanes.hungry(), lanes.nextDue()], [0, [], undefined])
})

test('an event added to a shortened subject queue waits for the events before it', () => {
  const lanes = new Lanes()
  const all = rows('a', laneRows + 5)
  lanes.add(all, 0)
  const sent: number[] = []
  const sendOne = () => {
    const [lane] = lanes.take(1, 0)
    sent.push(lane!.rows[0]!.id)
    lanes.done(lane!, 0)
  }
  for (let i = 0; i < 10; i++) sendOne()
  const late = row('a')
  lanes.add([late], 0)
  for (let i = 10; i < laneRows; i++) sendOne()
  const [hungry] = lanes.hungry()
  lanes.feed(
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
  const lanes = new Lanes()
  lanes.add(rows('a', laneRows + 1), 0)
  for (let i = 0; i < laneRows; i++) lanes.done(lanes.take(1, 0)[0]!, 0)
  const [hungry] = lanes.hungry()
  lanes.feed(hungry!, [], false, 0)
  assert.deepEqual([lanes.size, lanes.hungry()], [0, []])
})

test('tests a failing sink with the row that was tried least, due or not', () => {
  const lanes = new Lanes()
  const [often, once, never] = [
    row('a', { attempts: 5 }),
    row('b', { attempts: 1, nextTime: new Date(1e6).toISOString() }),
    row('c', { nextTime: new Date(1e6).toISOString() }),
  ]
  lanes.add([often, once, never], 0)
  assert.deepEqual(
    [...ids(lanes.takeProbe(0)), ...ids(lanes.takeProbe(0)), ...ids(lanes.takeProbe(0))],
    [never.id, once.id, often.id],
  )
  assert.deepEqual(lanes.takeProbe(0), [])
})
