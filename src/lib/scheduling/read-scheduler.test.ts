import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createReadScheduler } from './read-scheduler.ts'

const readOf = (organization: string, digest = 'sha256:a') => ({ repo: 1, organization, digest })
async function* due(...organizations: string[]) {
  for (const one of organizations) yield readOf(one)
}
const alone = async () => false
const others = async () => true

/** Turns with a clock that moves only while an image is read. */
function turnsAt() {
  let now = 0
  const turns = createReadScheduler(() => now, { giveWayMs: 1, shortMs: 1000 })
  return {
    ...turns,
    wait: (ms: number) => {
      now += ms
    },
    use: (organization: string, ms: number) =>
      turns.take(readOf(organization), alone, async () => {
        now += ms
      }),
    next: async (...organizations: string[]) => (await turns.choose(due(...organizations)))?.organization,
  }
}

test('an organization that used time pauses three times as long while others wait, and never when alone', async () => {
  const { use, next, wait } = turnsAt()
  assert.equal(await next(), undefined)
  await use('a', 30_000)
  assert.deepEqual([await next('a', 'b'), await next('a')], ['b', 'a'])
  wait(89_999)
  assert.equal(await next('a', 'b'), 'b')
  wait(1)
  assert.equal(await next('a', 'b'), 'a')
})

test('serves first the organization whose pause ends first, and does not count time used alone', async () => {
  const { use, next } = turnsAt()
  for (let i = 0; i < 100; i++) await use('a', 30_000)
  await use('b', 31_000)
  assert.equal(await next('b', 'a'), 'a')
  await use('c', 2000)
  assert.equal(await next('b', 'a', 'c'), 'c')
})

test('short images take turns without a pause', async () => {
  const { use, next } = turnsAt()
  await use('a', 999)
  assert.equal(await next('a', 'b'), 'a')
})

test('a read yields once, and only while others wait', async () => {
  const turns = createReadScheduler(() => 0, { giveWayMs: 1, shortMs: 1000 })
  let asked = 0
  const later = async () => ++asked > 3
  const signals: AbortSignal[] = []
  const untilAborted = async (signal: AbortSignal) => {
    signals.push(signal)
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  }
  await turns.take(readOf('a'), later, untilAborted)
  assert.equal(asked, 4)
  const wholly = async (signal: AbortSignal) => {
    signals.push(signal)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await turns.take(readOf('a'), others, wholly)
  // The uninterrupted turn of the image is over. In later turns it is treated like other images.
  await turns.take(readOf('a'), others, untilAborted)
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true, false, true],
  )
})

test('a read that fails ends its turn, and rejects with the error', async () => {
  const { take, choose } = createReadScheduler(() => 0, { giveWayMs: 1, shortMs: 0 })
  await assert.rejects(
    take(readOf('a'), others, async () => {
      throw new Error('broken')
    }),
    /broken/,
  )
  assert.equal((await choose(due('a')))?.organization, 'a')
})
