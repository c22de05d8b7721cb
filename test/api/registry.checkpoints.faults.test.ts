// Stored checkpoints while a database server lags, a store hangs or nothing is stored yet.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sequenceSome } from '#domains/registry/proofs/sequence.service.ts'
import { signLogs } from '#domains/registry/proofs/signing.service.ts'
import { compareCheckpoints } from '#domains/registry/proofs/stored-checkpoints.service.ts'
import { remember, scene } from '../support/checkpoints.ts'
import { withoutLease } from '../support/duties.ts'

test('a read from a database server that lags suspends no log, and a real contradiction does', async () => {
  await using at = await scene()
  const { app } = at
  const goBack = await remember(at)
  await at.move()
  await at.sign()
  // The size that the log had before; transactions use the primary.
  const lagging = { ...app, db: { ...app.db, get: async () => ({ size: 2 }) as never } }
  await at.move()
  await app.db.tx((tx) => sequenceSome(tx, app, new URL(at.pinfold.url).host))
  assert.equal(await compareCheckpoints(lagging, withoutLease(app)), undefined, 'it stays due')
  assert.equal(await signLogs(lagging, withoutLease(app)), 0, 'it waits')
  assert.deepEqual([at.errors(), at.warnings(), await at.stateOf()], [[], [], 1])
  assert.equal(await signLogs(app, withoutLease(app)), 1)
  assert.equal(at.sizeOf(await at.signed()), 4)

  await goBack()
  assert.deepEqual(await compareCheckpoints(lagging, withoutLease(app)), { compared: 1, suspended: 1 })
  assert.deepEqual([at.errors().length, await at.stateOf()], [1, 2])
})
