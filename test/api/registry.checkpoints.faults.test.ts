// Stored checkpoints if a database replica lags, a store hangs, or the store is empty.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CheckpointStore, StoreUnavailable } from '#blobs/blobs.ts'
import { sql } from '#db/sql.ts'
import { compareLedgers } from '#domains/ledger/ledger.job.ts'
import { createCheckpointGuard } from '#domains/ledger/proofs/checkpoint-guard.ts'
import { sequenceSome } from '#domains/ledger/proofs/sequence.service.ts'
import { signLogs } from '#domains/ledger/proofs/signing.service.ts'
import { compareCheckpoints } from '#domains/ledger/proofs/stored-checkpoints.service.ts'
import { runJob, withoutLease } from '../support/background-jobs.ts'
import { remember, replaceStore, scene } from '../support/checkpoints.ts'
import { plantTag } from '../support/tags.ts'

test('an outdated read from a database replica suspends no log, but a real contradiction does', async () => {
  await using at = await scene()
  const { app } = at
  const goBack = await remember(at)
  await at.move()
  await at.sign()
  // The earlier size of the log. Transactions read from the primary.
  const lagging = { ...app, db: { ...app.db, get: async () => ({ size: 2 }) as never } }
  await at.move()
  await app.db.tx((tx) => sequenceSome(tx, app, new URL(at.pinfold.url).host))
  assert.equal(await compareCheckpoints(lagging, withoutLease(app)), undefined, 'it stays due')
  assert.deepEqual(await signLogs(lagging, withoutLease(app)), { signed: 0, isWaiting: true })
  assert.deepEqual([at.errors(), at.warnings(), await at.stateOf()], [[], [], 1])
  assert.deepEqual(await signLogs(app, withoutLease(app)), { signed: 1, isWaiting: false })
  assert.equal(at.sizeOf(await at.signed()), 4)

  await goBack()
  assert.deepEqual(await compareCheckpoints(lagging, withoutLease(app)), { compared: 1, suspended: 1 })
  assert.deepEqual([at.errors().length, await at.stateOf()], [1, 2])
})

/** An empty store. */
function emptyStore(): Partial<CheckpointStore> & { texts: Map<string, string> } {
  const texts = new Map<string, string>()
  return {
    texts,
    async read(name) {
      const text = texts.get(name)
      return text === undefined ? undefined : { text, version: text }
    },
    async write(name, text, expected) {
      if (texts.get(name) !== expected) return undefined
      texts.set(name, text)
      return text
    },
  }
}

test('a log signed by an earlier release gets a stored checkpoint, so that signing stops on an older database', async () => {
  await using at = await scene()
  const { app } = at
  const store = emptyStore()
  replaceStore(at, () => store)
  app.checkpointGuard = createCheckpointGuard()
  await app.db.tx((tx) => tx.run(sql`UPDATE ledger_logs SET stored_size = 0`))
  const goBack = await remember(at)
  await at.move()
  await at.sign()
  store.texts.clear()
  await app.db.tx((tx) => tx.run(sql`UPDATE ledger_logs SET stored_size = 0`))
  app.checkpointGuard = createCheckpointGuard()

  assert.deepEqual(await runJob(app, compareLedgers), { compared: 1, suspended: 0 })
  assert.equal(await at.stored(), await at.signed())
  const row = await app.db.get<{ stored: number }>(sql`SELECT stored_size AS stored FROM ledger_logs`)
  assert.deepEqual([row, at.warnings()], [{ stored: 3 }, []])

  await goBack()
  app.checkpointGuard = createCheckpointGuard()
  const before = await at.signed()
  await at.move()
  await at.sign()
  assert.deepEqual([await at.signed(), await at.stateOf(), at.errors().length], [before, 2, 1])
})

test('writes a lost stored checkpoint again, with a warning once it is written', async () => {
  await using at = await scene()
  const store = emptyStore()
  const refused = () => Promise.reject(new StoreUnavailable('AccessDenied'))
  const allow = replaceStore(at, () => ({ ...store, write: refused }))
  at.app.checkpointGuard = createCheckpointGuard()
  const told = 'the stored checkpoint of a transparency log was lost and is written again'
  await at.move()
  for (let i = 0; i < 3; i++) await at.sign()
  assert.deepEqual(await runJob(at.app, compareLedgers), {})
  assert.deepEqual(at.warnings(), ['checkpoints cannot be stored, so the signing of transparency logs waits'])
  allow()
  replaceStore(at, () => store)
  assert.deepEqual(await runJob(at.app, compareLedgers), { compared: 1, suspended: 0 })
  assert.deepEqual(at.warnings().slice(1), [told])
  assert.equal(await at.stored(), await at.signed())
})

test('signing stops at the first page that the store does not accept, and later pages are not tried', async () => {
  await using at = await scene()
  const { app, pinfold } = at
  for (let i = 0; i < 6; i++) {
    const org = (await pinfold.seed.group('', { name: `org-${i}` })).uid as string
    const repo = (await pinfold.seed.repo(org, { name: 'app' })).uid as string
    await plantTag(pinfold, repo, 'v1', `image of ${i}`)
  }
  const { host } = new URL(pinfold.url)
  while ((await app.db.tx((tx) => sequenceSome(tx, app, host))) > 0);
  const tried: string[] = []
  const never = new Promise<never>(() => {})
  let deadline = new AbortController()
  // The store ignores abort signals, like a folder on a network file system.
  const back = replaceStore(at, () => ({
    write(name) {
      tried.push(name)
      if (tried.length % 2 === 0) deadline.abort()
      return never
    },
  }))
  const run = () => {
    deadline = new AbortController()
    return signLogs(app, withoutLease(app), { most: 2, deadline: deadline.signal })
  }
  assert.deepEqual(await run(), { signed: 0, isWaiting: true })
  assert.equal(tried.length, 2)
  assert.deepEqual(await run(), { signed: 0, isWaiting: true })
  assert.deepEqual([tried.length, new Set(tried).size], [4, 4], 'the next run begins with other logs')
  assert.equal(at.warnings().length, 1)
  back()
  assert.deepEqual(await signLogs(app, withoutLease(app), { most: 2 }), { signed: 6, isWaiting: false })
})

test('a log that cannot be signed does not delay other logs on its page', async () => {
  await using at = await scene()
  const { app, pinfold } = at
  for (let i = 0; i < 3; i++) {
    const org = (await pinfold.seed.group('', { name: `org-${i}` })).uid as string
    const repo = (await pinfold.seed.repo(org, { name: 'app' })).uid as string
    await plantTag(pinfold, repo, 'v1', `image of ${i}`)
  }
  const { host } = new URL(pinfold.url)
  while ((await app.db.tx((tx) => sequenceSome(tx, app, host))) > 0);
  const { id } = (await app.db.get<{ id: number }>(sql`SELECT max(log_id) AS id FROM ledger_tiles`))!
  await app.db.tx((tx) => tx.run(sql`UPDATE ledger_tiles SET log_id = -log_id WHERE log_id = ${id}`))
  assert.deepEqual(await signLogs(app, withoutLease(app)), { signed: 2, isWaiting: false })
  await app.db.tx((tx) => tx.run(sql`UPDATE ledger_tiles SET log_id = -log_id WHERE log_id < 0`))
  assert.deepEqual(await signLogs(app, withoutLease(app)), { signed: 1, isWaiting: false })
})
