// Order in which rows of the tag history enter the transparency logs while very many wait.
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { sequenceLedgers } from '#domains/ledger/ledger.job.ts'
import { movedTags } from '#domains/ledger/proofs/logs.store.ts'
import { sequenceSome } from '#domains/ledger/proofs/sequence.service.ts'
import { signLogs } from '#domains/ledger/proofs/signing.service.ts'
import { parseProofs } from '#lib/tlog/proof-text.ts'
import { parseEntry } from '#lib/tlog/tag-entry.ts'
import { runJob, withoutLease } from '../support/background-jobs.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'
import { digestOf, plantMoves, plantTag } from '../support/tags.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())
beforeEach(async () => {
  await pinfold.app.db.tx((tx) => tx.run(sql`DELETE FROM ledger_pending`))
  pinfold.app.sequencing.after = 0
})

let last = 0
const newOrganization = async () => (await pinfold.seed.group('', { name: `org-${last++}` })).uid as string

/**
 * Creates repositories of an organization, numbered in order, each with the given number of tag history rows that wait for the
 * log.
 */
async function plantWaiting(organization: string, count: number, rows: number): Promise<number[]> {
  const { db } = pinfold.app
  const ledgers = Array.from({ length: count }, () => 1000 + last++)
  for (const ledger of ledgers) {
    const moves = Array.from({ length: rows }, (_, i) => ({ tag: `t${i}`, digest: digestOf(`${i}`) }))
    await db.tx((tx) =>
      tx.run(sql`INSERT INTO ledgers (id, group_uid, name) VALUES (${ledger}, ${organization}, ${`r${ledger}`})`),
    )
    await plantMoves(pinfold, { ledger }, moves)
    await db.tx((tx) =>
      tx.run(sql`
        INSERT INTO ledger_pending (ledger_id, tag, time, path, kind)
        SELECT repo_id, tag, time, 'acme/app', 1 FROM tag_history WHERE repo_id = ${ledger}`),
    )
  }
  return ledgers
}

async function left(ledgers: readonly number[]): Promise<number> {
  const rows = await pinfold.app.db.all<{ ledger: number }>(sql`SELECT ledger_id AS ledger FROM ledger_pending`)
  return rows.filter(({ ledger }) => ledgers.includes(ledger)).length
}

const some = ({ app } = pinfold): Promise<number> => app.db.tx((tx) => sequenceSome(tx, app, 'host.example'))

test('twenty repositories with many rows delay the next repository by one batch, in any organization', async () => {
  const many = await plantWaiting(await newOrganization(), 20, 40)
  const one = await plantWaiting(await newOrganization(), 1, 1)
  await some()
  assert.deepEqual([await left(many), await left(one)], [600, 1])
  await some()
  assert.equal(await left(one), 0)
  // The order starts again from the beginning until no row waits.
  while ((await some()) > 0);
  assert.equal(await left(many), 0)
})

/** Imports the given number of tag updates for each tag, made minutes ago in another registry. */
async function importMoves(repoUid: string, names: readonly string[], each: number): Promise<void> {
  const from = Date.now() - 3_600_000
  const records = Array.from({ length: each }, (_, i) => {
    return { time: new Date(from + i * 1000).toISOString(), digest: digestOf(`${i}`) }
  })
  const tags = names.map((name) => ({ name, records }))
  const { status, text } = await pinfold.operator.post('/control/v1/tagHistory:import', { repoUid, tags })
  assert.equal(status, 200, text)
}

test('an import delays the log entry of a tag update only if it is for the same tag', async () => {
  const organization = await newOrganization()
  const repoOf = async (name: string) => (await pinfold.seed.repo(organization, { name })).uid as string
  const [busy, other] = [await repoOf('busy'), await repoOf('other')]
  const names = Array.from({ length: 30 }, (_, i) => `${100 + i}`)
  for (const part of ['a', 'b', 'c', 'd']) {
    await importMoves(
      busy,
      names.map((name) => part + name),
      50,
    )
  }
  const count = async (): Promise<number> =>
    (await pinfold.app.db.get<{ n: number }>(sql`SELECT CAST(count(*) AS INTEGER) AS n FROM ledger_pending`))!.n
  assert.equal(await count(), 6000)
  const positionOf = async (repo: string, tag: string) => {
    const { text } = await pinfold.operator.get(`/ledger/${organization}/repos/${repo}/tags/${tag}/proof`)
    const [proof] = parseProofs(text) ?? []
    return proof && parseEntry(JSON.parse(proof.extra.toString()).entry)?.seq
  }
  for (let round = 0; round < 3; round++) {
    const moved = [
      [busy, `z-${round}`, 0],
      [other, `z-${round}`, 0],
      // The imported updates of this tag come before this update.
      [busy, `d${129 - round}`, 50],
    ] as const
    for (const [repo, tag] of moved) await plantTag(pinfold, repo, tag, `live ${round}`)
    const before = await count()
    for (let turn = 0; turn < 2; turn++) await some()
    assert.ok(before - (await count()) <= 400)
    await signLogs(pinfold.app, withoutLease(pinfold.app))
    for (const [repo, tag, seq] of moved)
      assert.equal(await positionOf(repo, tag), seq, `${repo} ${tag} in round ${round}`)
  }
  assert.ok((await count()) > 4500)
})

test('finds recent tag updates among the newest rows of the repository, however many rows wait', async () => {
  const waiting = { ledger: 1, organization: 'org', isReady: true }
  for (const afterTag of [null, 'm']) {
    const asked = (reader: Reader) => movedTags(reader as Tx, { ...waiting, afterTag }, '2026-01-01', 200)
    const [query] = await queriesOf(asked)
    await checkPlanOf(pinfold, query!, 'moved tags', [/tag_history_by_time/])
  }
})

test('organizations get the same share of a batch, however many repositories they have', async () => {
  const large = await plantWaiting(await newOrganization(), 19, 20)
  const small = await plantWaiting(await newOrganization(), 1, 200)
  await some()
  assert.deepEqual([await left(large), await left(small)], [19 * (20 - 6), 100])
})

test('skips repositories that cannot be logged, however many there are', async () => {
  const good = await plantWaiting(await newOrganization(), 1, 1)
  const stopped = await newOrganization()
  await plantWaiting(stopped, 1, 1)
  while ((await some()) > 0);
  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE ledger_logs SET state = 2 WHERE org_uid = ${stopped}`))
  const waiting = await plantWaiting(stopped, 250, 1)
  const [next] = await plantWaiting(await newOrganization(), 1, 1)
  assert.equal(await some(), 1)
  assert.deepEqual([await left(waiting), await left([next!]), await left(good)], [250, 0, 0])
  assert.equal(await some(), 0)
  assert.deepEqual(await runJob(pinfold.app, sequenceLedgers).then(({ entries }) => entries ?? 0), 0)
})

test('a log suspended while its rows are read gets no successor, and is not signed', async () => {
  const { app } = pinfold
  const organization = await newOrganization()
  await plantWaiting(organization, 1, 3)
  await runJob(app, sequenceLedgers)
  await plantWaiting(organization, 1, 5)
  const suspend = (tx: Tx) =>
    tx.run(sql`UPDATE ledger_logs SET state = 2 WHERE org_uid = ${organization} AND state = 1`)
  const logs = () =>
    app.db.all<{ state: number; size: number; checkpoint: string }>(sql`
      SELECT state, size, checkpoint FROM ledger_logs WHERE org_uid = ${organization}`)
  const [before] = await logs()
  const meanwhile = (tx: Tx): Tx => {
    let reads = 0
    return {
      ...tx,
      async all<T>(query: Sql) {
        const rows = await tx.all<T>(query)
        if (reads++ === 0) await suspend(tx)
        return rows
      },
    }
  }
  const count = await app.db.tx((tx) => sequenceSome(meanwhile(tx), app, 'log.example'))
  assert.deepEqual([count, await logs()], [0, [{ ...before!, state: 2 }]])
  await app.db.tx((tx) =>
    tx.run(sql`UPDATE ledger_logs SET state = 1, checkpoint_size = 0 WHERE org_uid = ${organization}`),
  )
  // The first transaction detects the contradiction, and the second one signs.
  let begun = 0
  const tx: typeof app.db.tx = (work, options) =>
    app.db.tx(async (one) => {
      if (begun++ === 1) await suspend(one)
      return work(one)
    }, options)
  assert.equal((await signLogs(app, { ...withoutLease(app), tx })).signed, 0)
  assert.equal(begun, 2)
  await app.db.tx((one) => one.run(sql`UPDATE ledger_logs SET checkpoint_size = size WHERE org_uid = ${organization}`))
  assert.deepEqual(await logs(), [{ ...before!, state: 2 }])
})

async function runs(): Promise<{ entries: number; checkpoints: number; asked: number }> {
  let asked = 0
  const unsubscribe = sequenceLedgers.wake!(pinfold.app).subscribe(() => asked++)
  const { entries = 0, checkpoints = 0 } = await runJob(pinfold.app, sequenceLedgers)
  unsubscribe()
  return { entries, checkpoints, asked }
}

test('a run with rows left requests the next run at once, and the last run does not', async () => {
  pinfold.app.sequencing.monotonic = () => 0
  const waiting = await plantWaiting(await newOrganization(), 1, 10_001)
  assert.deepEqual(await runs(), { entries: 10_000, checkpoints: 1, asked: 1 })
  assert.equal(await left(waiting), 1)
  assert.deepEqual(await runs(), { entries: 1, checkpoints: 1, asked: 0 })
  assert.equal(await left(waiting), 0)
})

test('a run with slow batches signs its entries, and leaves the rest to the next run', async () => {
  const waiting = await plantWaiting(await newOrganization(), 1, 1000)
  let now = 0
  pinfold.app.sequencing.monotonic = () => now++ * 2000
  const { entries, checkpoints, asked } = await runs()
  assert.ok(entries > 0 && entries < 1000, `${entries}`)
  assert.deepEqual([checkpoints, asked, await left(waiting)], [1, 1, 1000 - entries])
})
