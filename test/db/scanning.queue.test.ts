// Queued comparisons complete, also if the server that runs them stops.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createLeases } from '#db/leases.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { claimMatch, postponeMatch, processMatch } from '#domains/scanning/findings/match-queue.service.ts'
import { findKnownNow } from '#domains/scanning/image-findings/image-findings.store.ts'
import { completeList, prepareList } from '#domains/scanning/lists/lists.service.ts'
import type { DueMatch } from '#domains/scanning/queue/queue.model.ts'
import { countMatches, endMatch, ownedMatches } from '#domains/scanning/queue/queue.store.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { readSource, recordAbout } from '../support/scanning.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
  await readSource(pinfold.app, 'Alpine:v3.19', [recordAbout('CVE-2026-1', 'Alpine:v3.19', 'ssl', '9')])
})
after(() => pinfold[Symbol.asyncDispose]())

const organization = 'a'.repeat(40)

/** An image that waits for comparison, claimed by a node that never returns. */
async function leftBehind(hash: string): Promise<{ listNo: number; left: DueMatch }> {
  const { app } = pinfold
  const one = { kind: 'apk', name: 'ssl', version: '1-r0', origin: 'ssl', originVersion: '1-r0', arch: hash } as const
  const list = await prepareList(app, { hash, distribution: { id: 'alpine', version: '3.19' } }, [one])
  await app.db.tx((tx) => completeList(tx, list, organization, app.clock().toISOString()))
  const left = await claimMatch(app, { node: 'gone', isGone: () => false, after: undefined })
  assert.equal(left?.owner, 'gone')
  return { listNo: list.listNo, left }
}
const found = async (listNo: number) =>
  (await findKnownNow(pinfold.app.db, listNo, [], 10)).map(({ record }) => record.id)

test('another server takes over the work of a stopped server, which completes nothing after its return', async () => {
  const { app } = pinfold
  const { listNo, left } = await leftBehind('first')
  const taker = { node: 'here', after: undefined }
  assert.equal(await claimMatch(app, { ...taker, isGone: () => false }), undefined, 'its node may be alive')
  const taken = await claimMatch(app, { ...taker, isGone: (node) => node === 'gone' })
  assert.deepEqual([taken?.item, taken?.owner, taken!.fence > left.fence], [left.item, 'here', true])
  assert.equal(await app.db.tx((tx) => endMatch(tx, left)), false)
  await postponeMatch(app, left, 60_000)
  assert.deepEqual(await ownedMatches(app.db), [taken])
  await processMatch(app, taken!, new AbortController().signal)
  for (let next = taken; next; next = await claimMatch(app, { ...taker, isGone: () => false })) {
    if (next !== taken) await processMatch(app, next, new AbortController().signal)
  }
  assert.deepEqual([await found(listNo), await countMatches(app.db)], [['CVE-2026-1'], 0])
})

test('the job takes over the work of a server without heartbeats after the length of a lease', async () => {
  const { app } = pinfold
  const { listNo } = await leftBehind('second')
  let ms = 0
  const leases = createLeases(app.db, {
    ...{ node: 'here', leaseMs: 60_000, monotonic: () => ms, skew: app.skew, names: [] },
    signal: new AbortController().signal,
  })
  await leases.look()
  if (app.db.shared) {
    await matchPackages.run(app, leases.everyNode)
    assert.deepEqual([await found(listNo), await countMatches(app.db)], [[], 1])
  }
  ms += 60_001
  await leases.look()
  await matchPackages.run(app, leases.everyNode)
  assert.deepEqual([await found(listNo), await countMatches(app.db)], [['CVE-2026-1'], 0])
  await leases.release()
})
