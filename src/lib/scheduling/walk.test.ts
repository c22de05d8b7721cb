import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Walk } from './walk.ts'

const walkOf = (limits: { steps: number; bytes: number }, signal = new AbortController().signal) =>
  new Walk(limits, signal, (limit) => new Error(`more than ${limit}`))

test('a database walk ends at its limit of steps or bytes, whichever comes first', () => {
  const long = walkOf({ steps: 3, bytes: 100 })
  long.spend(3, 0)
  assert.throws(() => long.spend(1, 0), { message: 'more than 3 steps' })
  const large = walkOf({ steps: 3, bytes: 100 })
  large.spend(1, 100)
  assert.throws(() => large.spend(0, 1), { message: 'more than 100 bytes' })
})

test('keeps visited items', () => {
  const walk = walkOf({ steps: 1, bytes: 1 })
  assert.deepEqual(
    ['a', 'b', 'a'].map((name) => walk.isNew(name)),
    [true, true, false],
  )
})

/** Number of turns of the event loop during `work`. */
async function turnsOf(work: () => Promise<void>): Promise<number> {
  let turns = -1
  let next: NodeJS.Immediate | undefined
  const count = (): void => {
    turns++
    next = setImmediate(count)
  }
  count()
  await work()
  clearImmediate(next)
  return turns
}

test('a database walk lets other work run by the time that it takes, not by its steps', async () => {
  let now = 0
  const stepsOf = async (steps: number, msEach: number): Promise<number> => {
    const walk = new Walk({ steps, bytes: 0 }, new AbortController().signal, Error, () => now)
    return turnsOf(async () => {
      for (let i = 0; i < steps; i++) {
        await walk.pause()
        now += msEach
      }
    })
  }
  assert.equal(await stepsOf(100, 0), 0)
  assert.equal(await stepsOf(301, 1), 100)
  assert.equal(await stepsOf(11, 50), 10)
})

test('ends a database walk once no caller waits for it', async () => {
  const gone = new AbortController()
  const walk = walkOf({ steps: 1, bytes: 1 }, gone.signal)
  await walk.pause()
  gone.abort(new Error('too late'))
  await assert.rejects(walk.pause(), { message: 'too late' })
})
