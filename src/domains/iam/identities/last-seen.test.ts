import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Db } from '#db/sql.ts'
import { createLastSeen } from './last-seen.ts'

/** A fake database that counts writes, and fails while it is down. */
function start() {
  const state = { down: false, writes: [] as unknown[][] }
  const db = {
    async tx(work: (tx: unknown) => Promise<unknown>) {
      if (state.down) throw new Error('down')
      return work({ run: async ({ values }: { values: unknown[] }) => void state.writes.push(values) })
    },
  } as unknown as Db
  const errors: unknown[] = []
  return { state, errors, lastSeen: createLastSeen(db, (error) => errors.push(error)) }
}

test('writes an identity once, with the latest time, however often it was seen', async () => {
  const { state, lastSeen } = start()
  for (const time of ['1', '2', '3']) lastSeen.note('b', time)
  lastSeen.note('a', '2')
  assert.equal(state.writes.length, 0)
  await lastSeen.flush()
  assert.deepEqual(
    state.writes.map(([time, uid]) => [uid, time]),
    [
      ['a', '2'],
      ['b', '3'],
    ],
  )
  await lastSeen.flush()
  assert.equal(state.writes.length, 2)
  await lastSeen.close()
})

test('retries failed writes later, with the latest time', async () => {
  const { state, lastSeen } = start()
  state.down = true
  lastSeen.note('a', '1')
  lastSeen.note('b', '1')
  await assert.rejects(lastSeen.flush(), /down/)
  lastSeen.note('b', '2')
  state.down = false
  await lastSeen.flush()
  assert.deepEqual(
    state.writes.map(([time, uid]) => [uid, time]),
    [
      ['a', '1'],
      ['b', '2'],
    ],
  )
  await lastSeen.close()
})

test('close writes pending times, and succeeds if the database fails', async () => {
  const { state, errors, lastSeen } = start()
  lastSeen.note('a', '1')
  state.down = true
  await lastSeen.close()
  assert.equal(errors.length, 1)
})
