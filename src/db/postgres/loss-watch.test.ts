import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { createLossWatch } from './loss-watch.ts'
import { send, type TimeLimit } from './send.ts'

const pid = 7
const none: TimeLimit = { kind: 'none', ms: 0 }

/** A connection whose statements get no answer. A closed connection fails. */
function makeClient() {
  let fail = () => {}
  const client = {
    processID: pid,
    connection: { stream: { destroy: () => fail() } },
    query(_query: unknown, done: (error: Error) => void) {
      fail = () => done(new Error('Connection terminated'))
    },
  }
  return client as unknown as pg.PoolClient
}

test('closes a connection whose statement the server ran at first and later does not', async () => {
  const client = makeClient()
  let isDropped = false
  const lost = send(client, { text: 'SELECT 1' }, none).catch(() => {
    isDropped = true
  })
  let asked = 0
  const watch = createLossWatch(
    { silentMs: 0, watchMs: 2, sparedMs: 10 },
    { live: () => [client], isPooled: false, ask: async () => new Set(asked++ === 0 ? [pid] : []) },
  )
  try {
    while (!isDropped && asked < 20) await sleep(2)
    // The server runs the statement at first, then no longer, then still not.
    assert.deepEqual([isDropped, asked], [true, 3])
    await lost
  } finally {
    watch.close()
  }
})
