import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createConnecting } from './connecting.ts'

function scene() {
  const waiting: (() => void)[] = []
  let now = 0
  const connecting = createConnecting(
    (work) => void waiting.push(work),
    () => now,
  )
  return {
    connecting,
    /** Uses `ms` milliseconds of thread time. */
    spend: (ms: number) => {
      now += ms
    },
    /** One turn of the event loop. */
    turn: () => waiting.splice(0).forEach((work) => void work()),
  }
}

test('long work waits while new connections are accepted', () => {
  const { connecting, turn } = scene()
  let isDone = false
  connecting.behind(() => {
    isDone = true
  })
  for (let i = 0; i < 10; i++) {
    connecting.note()
    turn()
    assert.equal(isDone, false)
  }
  turn()
  assert.equal(isDone, true)
})

test('long work waits for at most 32 turns with new connections', () => {
  const { connecting, turn } = scene()
  let isDone = false
  connecting.behind(() => {
    isDone = true
  })
  let turns = 0
  for (; !isDone; turns++) {
    connecting.note()
    turn()
  }
  assert.equal(turns, 33)
})

test('continues long work in the next turn if no connection was accepted', () => {
  const { connecting, turn } = scene()
  let isDone = false
  connecting.note()
  connecting.behind(() => {
    isDone = true
  })
  turn()
  assert.equal(isDone, true)
})

test('long work of another kind waits for the next turn, and runs first there', () => {
  const { connecting, spend, turn } = scene()
  const done: string[] = []
  const work = (name: string, ms: number) => () => {
    done.push(name)
    spend(ms)
  }
  for (const name of ['batch', 'body', 'check']) connecting.behind(work(name, 10))
  const each: string[][] = []
  for (let i = 0; i < 3; i++) {
    turn()
    each.push(done.splice(0))
    // The kind of work that has already run comes after the kinds that have waited.
    if (i === 0) connecting.behind(work('batch again', 10))
  }
  assert.deepEqual(each, [['batch'], ['body'], ['check']])
  turn()
  assert.deepEqual(done, ['batch again'])
})

test('short work continues in a turn with long work', () => {
  const { connecting, spend, turn } = scene()
  const done: string[] = []
  connecting.behind(() => spend(10))
  connecting.behind(
    (isLight) => void done.push(isLight ? 'light' : 'long'),
    () => true,
  )
  turn()
  assert.deepEqual(done, ['light'])
})

test('short work of several kinds shares one turn', () => {
  const { connecting, spend, turn } = scene()
  let done = 0
  const work = () => {
    done++
    spend(1)
  }
  for (let i = 0; i < 4; i++) connecting.behind(work)
  turn()
  assert.equal(done, 4)
})

test('resolves a promise in the same turn in which a callback would run', async () => {
  const { connecting, spend, turn } = scene()
  const done: string[] = []
  connecting.behind(() => spend(10))
  void connecting.turn().then(() => done.push('turn'))
  turn()
  await undefined
  assert.deepEqual(done, [])
  turn()
  await undefined
  assert.deepEqual(done, ['turn'])
})
