// The server stores checkpoints beside the blobs before signing them, and signs nothing if the database was set back.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openDisk } from '#blobs/disk.ts'
import { readWalPosition } from '#db/postgres/wal-position.ts'
import { sql } from '#db/sql.ts'
import { backfillLedgers, compareLedgers, countLedgers } from '#domains/ledger/ledger.job.ts'
import { createCheckpointGuard } from '#domains/ledger/proofs/checkpoint-guard.ts'
import { checkpointName } from '#domains/ledger/proofs/logs.model.ts'
import { sequenceSome } from '#domains/ledger/proofs/sequence.service.ts'
import { signLogs } from '#domains/ledger/proofs/signing.service.ts'
import { countSuspended } from '#domains/ledger/proofs/stored-checkpoints.store.ts'
import { collectBlobs } from '#domains/registry/blobs/collect-blobs.job.ts'
import { parseNote } from '#lib/tlog/notes.ts'
import { parsePolicy } from '#lib/tlog/policy.ts'
import { backup } from '../../src/maintenance/backup.ts'
import { copyCheckpoints } from '../../src/maintenance/copy-blobs.ts'
import { verify } from '../../src/maintenance/verify.ts'
import { runJob, withoutLease } from '../support/background-jobs.ts'
import { bucketSettings, noBucket } from '../support/bucket.ts'
import { away, remember, replaceStore, scene } from '../support/checkpoints.ts'
import { type Json, onPostgres } from '../support/pinfold.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'

const stores = [
  { store: 'folder', skip: false, settings: async () => ({ blobs: '' }) },
  { store: 'bucket', skip: noBucket, settings: bucketSettings },
] as const

for (const { store, skip, settings } of stores) {
  test(`writes a checkpoint to the ${store} before signing it, and after its entries are committed`, {
    skip,
  }, async () => {
    await using at = await scene(await settings())
    assert.equal(await at.stored(), await at.signed())
    await at.move()
    const seen: unknown[] = []
    replaceStore(at, (real) => ({
      async write(...asked) {
        const row = await at.app.db.get<Json>(sql`
          SELECT size, stored_size, checkpoint_size FROM ledger_logs WHERE id = ${at.id}`)
        seen.push([row!.size, row!.stored_size, row!.checkpoint_size])
        return real.write(...asked)
      },
    }))
    await at.sign()
    assert.deepEqual(seen, [[3, 3, 2]])
    assert.equal(await at.stored(), await at.signed())
    await at.sign()
    assert.equal(seen.length, 1, 'a log that has not grown is not stored again')
  })

  test(`while the ${store} is unavailable, pushes continue and signing waits, and it resumes afterwards`, {
    skip,
  }, async () => {
    await using at = await scene(await settings())
    const before = await at.signed()
    const back = replaceStore(at, () => ({ read: away, write: away }))
    for (let i = 0; i < 3; i++) {
      await at.move()
      assert.deepEqual(await at.sign(), { entries: 1, checkpoints: 0 })
    }
    assert.equal(await at.signed(), before)
    assert.deepEqual(at.warnings(), ['checkpoints cannot be stored, so the signing of transparency logs waits'])
    assert.deepEqual(at.errors(), [])
    back()
    assert.deepEqual(await at.sign(), { entries: 0, checkpoints: 1 })
    assert.equal(at.sizeOf(await at.signed()), 5)
    assert.equal(await at.stored(), await at.signed())
  })

  test(`after a crash between ${store} and signature, the same checkpoint is signed without an alarm`, {
    skip,
  }, async () => {
    await using at = await scene(await settings())
    await at.move()
    const { app } = at
    const back = replaceStore(at, () => ({ write: away }))
    await at.sign()
    back()
    let begun = 0
    const tx: typeof app.db.tx = async (work, options) => {
      if (begun++ === 1) throw new Error('killed')
      return app.db.tx(work, options)
    }
    await assert.rejects(signLogs(app, { ...withoutLease(app), tx }), /killed/)
    const stored = await at.stored()
    assert.equal(at.sizeOf(stored), 3)
    assert.equal(at.sizeOf(await at.signed()), 2)
    // Another process, with empty caches.
    app.checkpointGuard = createCheckpointGuard()
    const written: string[] = []
    replaceStore(at, (real) => ({
      write(...asked) {
        written.push(asked[1])
        return real.write(...asked)
      },
    }))
    assert.deepEqual(await at.sign(), { entries: 0, checkpoints: 1 })
    assert.equal(await at.signed(), stored)
    assert.deepEqual([written, at.errors(), await at.stateOf()], [[], [], 1])
  })

  for (const regrown of [0, 1, 3]) {
    test(`refuses to sign a database that lost two entries and got ${regrown} others (${store})`, {
      skip,
    }, async () => {
      await using at = await scene(await settings())
      const goBack = await remember(at)
      for (let i = 0; i < 2; i++) await at.move()
      await at.sign()
      const honest = await at.signed()
      await goBack()
      const before = await at.signed()
      for (let i = 0; i < regrown; i++) await at.move()
      if (regrown > 0) await at.sign()
      else await runJob(at.app, compareLedgers)
      assert.equal(await at.signed(), before, 'nothing is signed')
      assert.equal(await at.stored(), honest, 'what was stored stays')
      assert.equal(await at.stateOf(), 2)
      const reason = regrown < 2 ? /the database has \d entries, but the stored checkpoint has 4/ : /differ from those/
      assert.equal(at.errors().length, 1)
      assert.match(at.errors()[0]!, reason)
      await at.move()
      await at.sign()
      await runJob(at.app, compareLedgers)
      assert.equal(at.errors().length, 1, 'it is told once')

      await runJob(at.app, countLedgers)
      const ready = await at.pinfold.anonymous.get('/readyz')
      assert.deepEqual([ready.status, ready.text.split('\n')[0]], [200, 'ok'])
      assert.match(ready.text, /signing is suspended for 1 transparency log;/)
      const metrics = await at.app.metrics.registry.metrics()
      assert.match(metrics, /^pinfold_ledger_logs_suspended 1$/m)
      assert.deepEqual(await at.findings(), [['log does not extend its stored checkpoint', false]])

      assert.equal((await at.operator.post('/control/v1/ledgerLogs:resume')).body.logs, 1)
      await at.move()
      await runJob(at.app, backfillLedgers)
      await at.sign()
      await runJob(at.app, countLedgers)
      assert.deepEqual((await at.pinfold.anonymous.get('/readyz')).text, 'ok\n')
      const [next] = parsePolicy((await at.operator.get(`/ledger/${at.org}/policy`)).text).logs
      assert.match(next!.name, new RegExp(`/ledger/${at.org}/2-[0-9a-f]{8}$`))
      const path = next!.name.slice(next!.name.indexOf('/'))
      const { text } = await at.operator.get(`${path}/checkpoint`)
      assert.equal((await at.app.blobs.checkpoints.read(checkpointName(next!.name)))?.text, parseNote(text)!.text)
      assert.deepEqual(await at.findings(), [])
      assert.equal(at.errors().length, 1)
    })
  }

  test(`garbage collection and verification keep the checkpoints in the ${store}`, { skip }, async () => {
    await using at = await scene(await settings())
    await at.operator.post('/control/v1/blobs:collect', {})
    await runJob(at.app, collectBlobs)
    await verify(at.app.config, { repair: true, hash: false, only: ['orphans', 'checkpoints'] })
    assert.equal(await at.stored(), await at.signed())
  })

  test(`logs a checkpoint that the ${store} lost, and stores it again`, { skip }, async () => {
    await using at = await scene(await settings())
    const none = replaceStore(at, (real) => ({
      read: async () => undefined,
      write: async (name, text) => real.write(name, text, (await real.read(name))?.version),
    }))
    at.app.checkpointGuard = createCheckpointGuard()
    assert.deepEqual(await at.findings(), [])
    await at.move()
    await at.sign()
    assert.ok(at.warnings().includes('the stored checkpoint of a transparency log was lost and is written again'))
    none()
    await at.sign()
    assert.equal(await at.stored(), await at.signed())
    assert.deepEqual(at.errors(), [])
  })

  test(`a backup and a copy of the ${store} include the checkpoints`, { skip }, async () => {
    await using at = await scene(await settings())
    const to = mkdtempSync(join(tmpdir(), 'pinfold-backups-'))
    try {
      const copied = async () => (await (await openDisk(join(to, 'blobs'))).checkpoints.read(at.name))?.text
      await backup(at.app.config, { to })
      assert.equal(await copied(), await at.signed())
      await at.move()
      await at.sign()
      const target = await openDisk(join(to, 'blobs'))
      await copyCheckpoints(at.app.blobs, target)
      assert.equal(await copied(), await at.signed())
      // An older copy does not replace it.
      const old = await openDisk(mkdtempSync(join(to, 'old-')))
      await old.checkpoints.write(at.name, `${at.origin}\n1\n${Buffer.alloc(32).toString('base64')}\n`, undefined)
      await copyCheckpoints(old, target)
      assert.equal(await copied(), await at.signed())
    } finally {
      rmSync(to, { recursive: true, force: true })
    }
  })
}

test('a larger checkpoint from one server does not stop a slower server from continuing the same log', async () => {
  await using at = await scene()
  await at.move()
  const { app } = at
  let isFirst = true
  replaceStore(at, (real) => ({
    async write(...asked) {
      if (!isFirst) return real.write(...asked)
      isFirst = false
      await at.move()
      await app.db.tx((tx) => sequenceSome(tx, app, new URL(at.pinfold.url).host))
      await signLogs({ ...app, checkpointGuard: createCheckpointGuard() }, withoutLease(app))
      return real.write(...asked)
    },
  }))
  assert.deepEqual(await at.sign(), { entries: 1, checkpoints: 0 }, 'what is signed is larger')
  assert.deepEqual([at.sizeOf(await at.signed()), at.sizeOf(await at.stored())], [4, 4])
  assert.deepEqual([at.errors(), await at.stateOf()], [[], 1])
})

test('a damaged stored checkpoint stops signing, because the last signed state is unknown', async () => {
  await using at = await scene()
  const { checkpoints } = at.app.blobs
  const { version } = (await checkpoints.read(at.name))!
  await checkpoints.write(at.name, 'something else\n', version)
  await runJob(at.app, compareLedgers)
  assert.equal(await at.stateOf(), 2)
  assert.match(at.errors()[0]!, /the stored checkpoint is damaged/)
})

test('compares all checkpoints once per process, and again only after the database was set back', async () => {
  await using at = await scene()
  let reads = 0
  replaceStore(at, (real) => ({
    read(...asked) {
      reads++
      return real.read(...asked)
    },
  }))
  assert.deepEqual(await runJob(at.app, compareLedgers), { compared: 1, suspended: 0 })
  for (let i = 0; i < 3; i++) assert.deepEqual(await runJob(at.app, compareLedgers), {})
  assert.equal(reads, 1)

  const back = replaceStore(at, () => ({ read: away }))
  at.app.checkpointGuard = createCheckpointGuard()
  assert.deepEqual(await runJob(at.app, compareLedgers), {})
  assert.deepEqual(at.warnings(), ['checkpoints cannot be stored, so the signing of transparency logs waits'])
  back()
  assert.deepEqual(await runJob(at.app, compareLedgers), { compared: 1, suspended: 0 }, 'it is still due')
})

test('compares again after a change of the timeline or a lower position in the write-ahead log', () => {
  const guard = createCheckpointGuard()
  const at = (timeline: string, position: bigint) => ({ timeline, position })
  const isDue = (now: ReturnType<typeof at>): boolean => {
    const due = guard.isComparisonDue(now)
    if (due) guard.compared(now)
    return due
  }
  assert.deepEqual(
    [
      isDue(at('00000001', 10n)),
      isDue(at('00000001', 10n)),
      isDue(at('00000001', 20n)),
      isDue(at('00000001', 19n)),
      isDue(at('00000001', 30n)),
      isDue(at('00000002', 40n)),
      isDue(at('00000002', 50n)),
      isDue(at('00000001', 60n)),
    ],
    [true, false, false, true, false, true, false, true],
  )
  assert.equal(guard.isComparisonDue(at('00000001', 1n)), true)
  assert.equal(guard.isComparisonDue(at('00000001', 1n)), true, 'until it is made')
  const unknown = createCheckpointGuard()
  assert.equal(unknown.isComparisonDue(undefined), true)
  unknown.compared(undefined)
  assert.equal(unknown.isComparisonDue(undefined), false)
})

test('PostgreSQL reports its timeline and growing position, and SQLite has none', async () => {
  await using at = await scene()
  const { db } = at.app
  const first = await readWalPosition(db)
  if (!onPostgres) return assert.equal(first, undefined)
  await at.move()
  const next = await readWalPosition(db)
  assert.match(first!.timeline, /^[0-9A-F]{8}$/)
  assert.equal(next!.timeline, first!.timeline)
  assert.ok(next!.position > first!.position)
  const refusing = (code: string) => ({ ...db, get: () => Promise.reject(Object.assign(new Error('no'), { code })) })
  assert.equal(await readWalPosition(refusing('42501')), undefined)
  await assert.rejects(readWalPosition(refusing('57P01')))
})

test('counts logs with stopped signing by an index', async () => {
  await using at = await scene()
  const [query] = await queriesOf((reader) => countSuspended(reader), { total: 0 })
  await checkPlanOf(at.pinfold, query!, 'suspended logs', [/ledger_logs_suspended/])
})
