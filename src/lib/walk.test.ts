import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Walk } from './walk.ts'

const walkOf = (limits: { steps: number; bytes: number }, signal = new AbortController().signal) =>
  new Walk(limits, signal, (limit) => new Error(`more than ${limit}`))

test('a walk ends at its limit of steps or bytes, whichever comes first', () => {
  const long = walkOf({ steps: 3, bytes: 100 })
  long.spend(3, 0)
  assert.throws(() => long.spend(1, 0), { message: 'more than 3 steps' })
  const large = walkOf({ steps: 3, bytes: 100 })
  large.spend(1, 100)
  assert.throws(() => large.spend(0, 1), { message: 'more than 100 bytes' })
})

test('a walk remembers what it has seen', () => {
  const walk = walkOf({ steps: 1, bytes: 1 })
  assert.deepEqual(
    ['a', 'b', 'a'].map((name) => walk.isNew(name)),
    [true, true, false],
  )
})

test('a walk lets others run, and ends once nobody waits for it', async () => {
  const gone = new AbortController()
  const walk = walkOf({ steps: 1, bytes: 1 }, gone.signal)
  let others = 0
  setImmediate(() => others++)
  await walk.pause()
  assert.equal(others, 1)
  gone.abort(new Error('too late'))
  await assert.rejects(walk.pause(), { message: 'too late' })
})
