import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { connecting } from './connecting.ts'
import { createShare, noteServed, type Shares } from './shares.ts'
import { createTurns } from './turns.ts'

test('runs as many tasks in one turn as there is time for, each until it waits again', async () => {
  let now = 0
  const turns = createTurns(() => now)
  const ran: string[] = []
  const slice = async (name: string): Promise<void> => {
    for (let times = 0; times < 2; times++) {
      await turns.next()
      // The work has several steps, and none of them waits for anything.
      for (let step = 0; step < 5; step++) await undefined
      now += 2
      ran.push(name)
    }
  }
  const all = Promise.all(['a', 'b', 'c', 'd', 'e'].map(slice))
  const each: string[] = []
  while (ran.length < 10) {
    const before = ran.length
    await turn()
    each.push(ran.slice(before).join(''))
  }
  await all
  assert.deepEqual(
    each.filter((names) => names !== ''),
    ['abc', 'dea', 'bcd', 'e'],
  )
})

test('serves a caller that used less time before callers that have waited longer', async () => {
  let now = 0
  const [noisy, quiet] = [[createShare()], [createShare()]]
  let caller: Shares = noisy
  const turns = createTurns(
    () => now,
    () => caller,
  )
  const ran: string[] = []
  const next = async (name: string, shares: Shares): Promise<void> => {
    caller = shares
    await turns.next()
    ran.push(name)
    now += 10
    shares[0]!.usedMs += 10
  }
  const all = [...'abcdefgh'].map((name) => next(name, noisy))
  while (ran.length < 2) await turn()
  all.push(next('quiet', quiet))
  await Promise.all(all)
  assert.deepEqual(ran.slice(0, 3), ['a', 'b', 'quiet'])
})

test('continues only a caller that used less time in a turn with other long work', async () => {
  const [noisy, quiet] = [[createShare()], [createShare()]]
  let caller: Shares = noisy
  const turns = createTurns(undefined, () => caller)
  const ran: string[] = []
  const next = async (name: string, shares: Shares): Promise<void> => {
    caller = shares
    await turns.next()
    ran.push(name)
  }
  // Other callers have been served, and the noisy caller has used more time than they have.
  noteServed([{ ...createShare(), usedMs: 1e7 }])
  noisy[0]!.usedMs = 2e7
  connecting.behind(() => {
    for (const until = performance.now() + 6; performance.now() < until; );
  })
  const all = [next('noisy', noisy), next('quiet', quiet)]
  let inFirst = ''
  setImmediate(() => {
    inFirst = ran.join()
  })
  await Promise.all(all)
  assert.equal(inFirst, 'quiet')
  assert.deepEqual(ran, ['quiet', 'noisy'])
})

test('a request for a turn within a turn gets a later turn, even if there is time', async () => {
  const turns = createTurns(() => 0)
  let ran = 0
  const again = async (): Promise<void> => {
    for (;;) {
      await turns.next()
      ran++
      if (ran === 3) return
    }
  }
  const all = again()
  let loops = 0
  for (; ran < 3; loops++) await turn()
  await all
  assert.ok(loops >= 3, String(loops))
})

test('starts a turn at once after a time without requests', async () => {
  const turns = createTurns()
  await turns.next()
  await turn()
  await turns.next()
})
