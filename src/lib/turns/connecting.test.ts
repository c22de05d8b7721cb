import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createConnecting } from './connecting.ts'

function scene() {
  const waiting: (() => void)[] = []
  const connecting = createConnecting((work) => void waiting.push(work))
  return {
    connecting,
    /** One turn of the event loop. */
    turn: () => waiting.splice(0).forEach((work) => void work()),
  }
}

test('long work waits while connections are accepted', () => {
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

test('long work waits for at most 32 turns with connections', () => {
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

test('long work goes on in the next turn when nobody connects', () => {
  const { connecting, turn } = scene()
  let isDone = false
  connecting.note()
  connecting.behind(() => {
    isDone = true
  })
  turn()
  assert.equal(isDone, true)
})
