// Two jobs, on one or two nodes, ask the same witness about a log at the same time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { sequenceLedgers, witnessLedgers } from '#domains/ledger/ledger.job.ts'
import { askBeforeSigning, collectCosignatures } from '#domains/ledger/proofs/cosignatures.service.ts'
import { sequenceSome } from '#domains/ledger/proofs/sequence.service.ts'
import { runJob } from '../support/background-jobs.ts'
import type { Pinfold } from '../support/pinfold.ts'
import { plantTag } from '../support/tags.ts'
import { restart, witnessed } from '../support/witnessed.ts'

type Post = Pinfold['app']['toWitnesses']['post']
/** Wraps the requests to witnesses in the given function; `send` is the original one. */
function sendBy({ app }: Pinfold, way: (send: Post) => Post): void {
  const { toWitnesses } = app
  app.toWitnesses = { ...toWitnesses, post: way(toWitnesses.post) }
}

/** Runs one of the two witness jobs without a lease, since all tests would have the same node. */
const asking = ({ app }: Pinfold, ask: typeof askBeforeSigning) =>
  ask(app, app.db.tx.bind(app.db), new AbortController().signal)

const headOf = (text: string) => ({
  size: Number(text.split('\n')[1]),
  signatures: text.match(/^— /gm)!.length,
})

/** Resumes all suspended logs as the operator, and returns their number. */
const suspended = async ({ operator }: Pinfold): Promise<number> =>
  (await operator.post('/control/v1/ledgerLogs:resume')).body.logs ?? 0

test('a log can be signed and witnessed again while a witness is asked about an earlier checkpoint', async () => {
  const { closing, log, repo, checkpoint } = await witnessed(1)
  await using _ = closing
  await runJob(log.app, witnessLedgers)
  await plantTag(log, repo, 'v1', 'b')
  await runJob(log.app, sequenceLedgers)
  let held = 0
  sendBy(log, (send) => async (...request) => {
    if (held++ === 0) {
      await plantTag(log, repo, 'v1', 'c')
      await runJob(log.app, sequenceLedgers)
      assert.equal(await asking(log, collectCosignatures), 1)
    }
    return send(...request)
  })
  assert.deepEqual([await asking(log, collectCosignatures), held], [0, 2])
  assert.deepEqual(headOf(await checkpoint()), { size: 4, signatures: 2 })
  await plantTag(log, repo, 'v1', 'd')
  await runJob(log.app, sequenceLedgers)
  assert.deepEqual(headOf(await checkpoint()), { size: 5, signatures: 1 })
  assert.equal(await suspended(log), 0)
})

test('an older cosignature never replaces one of a later checkpoint', async () => {
  const { closing, log, repo, checkpoint } = await witnessed(1)
  await using _ = closing
  let held = 0
  // The witness has signed the former checkpoint, and the answer is late.
  sendBy(log, (send) => async (...request) => {
    const answer = await send(...request)
    if (held++ === 0) {
      await plantTag(log, repo, 'v1', 'b')
      await runJob(log.app, sequenceLedgers)
      assert.equal(await asking(log, collectCosignatures), 1)
    }
    return answer
  })
  assert.equal(await asking(log, collectCosignatures), 0)
  assert.deepEqual(headOf(await checkpoint()), { size: 3, signatures: 2 })
  assert.deepEqual(await runJob(log.app, witnessLedgers), { cosigned: 0 })
})

test('after a lost answer, two concurrent requests to a witness both continue from its stored size', async () => {
  const { closing, log, repo, checkpoint } = await witnessed(1)
  await using _ = closing
  await runJob(log.app, witnessLedgers)
  await plantTag(log, repo, 'v1', 'b')
  await runJob(log.app, sequenceLedgers)
  await log.app.db.tx((tx) => tx.run(sql`UPDATE ledger_cosigners SET size = 1`))
  restart(log)
  await plantTag(log, repo, 'v1', 'c')
  await log.app.db.tx((tx) => sequenceSome(tx, log.app, new URL(log.url).host))
  // Both requests get the size before either sends a proof.
  const both = Promise.withResolvers<void>()
  const statuses: number[] = []
  sendBy(log, (send) => async (...request) => {
    const answer = await send(...request)
    if (statuses.push(answer.status) === 2) both.resolve()
    await both.promise
    return answer
  })
  await Promise.all([asking(log, askBeforeSigning), asking(log, collectCosignatures)])
  assert.deepEqual(statuses.sort(), [200, 200, 409, 409, 409], 'otherwise they have not met')
  await runJob(log.app, sequenceLedgers)
  assert.equal(headOf(await checkpoint()).size, 4)
  assert.equal(await suspended(log), 0)
})

test('asks a witness that reports a different size each time only a few times, without blocking other logs', async () => {
  const { closing, log } = await witnessed(1)
  await using _ = closing
  let count = 0
  sendBy(log, () => async () => ({ status: 409, body: `${count++ % 2}\n` }))
  assert.equal(await asking(log, collectCosignatures), 0)
  assert.deepEqual([count, await suspended(log)], [4, 0])
})

test('stops signing a log if a witness has a different checkpoint of the same size', async () => {
  const { closing, log, repo, witnesses } = await witnessed(1)
  await using _ = closing
  await runJob(log.app, witnessLedgers)
  const root = Buffer.alloc(32, 5).toString('base64')
  await witnesses[0]!.app.db.tx((tx) => tx.run(sql`UPDATE witnessed_logs SET root = ${root}`))
  restart(log)
  await plantTag(log, repo, 'v1', 'b')
  await runJob(log.app, sequenceLedgers)
  assert.equal(await suspended(log), 1)
})
