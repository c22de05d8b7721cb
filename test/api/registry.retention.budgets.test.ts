// Plans above the limit of one check: they continue with another check. Manifests that no check can decide on are kept and
// counted.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sweepRetention } from '#domains/policy/retention/plans.job.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { plantManifest, plantMoves } from '../support/tags.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const next = `sha256:${'0'.repeat(64)}`

/** A repository in which each manifest had the given number of tags, until the next manifest got these tags. */
async function scene(tagsOf: readonly number[]) {
  const { operator, seed, app } = pinfold
  const { uid } = await seed.repo((await seed.group()).uid)
  ok(await operator.post(`/registry/v2/retentionRules/${uid}`, { mode: 'ENFORCE', keepDaysAfter: 1 }))
  const repo = (await findRepoRow(app.db, { uid }))!
  const digests: string[] = []
  for (const i of tagsOf.keys()) digests.push(await plantManifest(pinfold, uid, `image ${i}`))
  const all = Array.from({ length: Math.max(...tagsOf) }, (_, i) => `t${i}`)
  await plantMoves(pinfold, repo, [
    ...digests.flatMap((digest, i) => all.slice(0, tagsOf[i]).map((tag) => ({ tag, digest }))),
    ...all.map((tag) => ({ tag, digest: next })),
  ])
  const plan = async (): Promise<Json> => {
    const { uid: made } = ok(await operator.post(`/registry/v2/retentionPlans/${uid}`, {}))
    await runJob(app, sweepRetention)
    return ok(await operator.get(`/registry/v2/retentionPlans/${made}`))
  }
  return { uid, digests, plan }
}

test('a plan continues with a second check after the first reaches its read limit', async () => {
  // Two of the manifests reach the limit of one check.
  const { digests, plan } = await scene([8000, 8000, 8000])
  const made = await plan()
  assert.deepEqual([made.state, made.manifests, made.undecided], ['READY', '3', '0'])
  ok(await pinfold.operator.post(`/registry/v2/retentionPlans/${made.uid}:apply`, {}))
  await runJob(pinfold.app, sweepRetention)
  const applied = ok(await pinfold.operator.get(`/registry/v2/retentionPlans/${made.uid}`))
  assert.deepEqual([applied.state, applied.deleted, applied.left], ['APPLIED', String(digests.length), '0'])
})

test('keeps manifests that a check has too much data to decide on, and the command shows their number', async () => {
  const { uid, digests, plan } = await scene([10_000, 1])
  const made = await plan()
  assert.deepEqual([made.manifests, made.undecided], ['1', '1'])
  const { deletions } = ok(await pinfold.operator.get(`/registry/v2/retentionPlans/${made.uid}/deletions`))
  assert.deepEqual(
    deletions.map(({ digest }: Json) => digest),
    [digests[1]],
  )
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! }
  const shown = await run(['policies', 'retention', 'plans', 'describe', made.uid], { env })
  assert.match(
    shown.stderr,
    /1 manifests to delete.*; 1 more are not deleted, because checking them would read too many records/,
  )
  assert.equal(shown.code, 0, uid)
})
