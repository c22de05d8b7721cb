// Statements about images that a server of an earlier version has deleted. The job deletes them, as a current server does.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Sql, sql } from '#db/sql.ts'
import { addBytes } from '#domains/registry/blobs/usage.service.ts'
import { removeRepos } from '#domains/registry/deletions/removals.job.ts'
import { sweepScanning } from '#domains/scanning/cleanup/cleanup.job.ts'
import { keysOf } from '../support/attest.ts'
import { runJob } from '../support/background-jobs.ts'
import { checkUsage } from '../support/check-usage.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { openssl, type SignedImages, said, startSignedImages, without, zlib } from '../support/signers.ts'

let images: SignedImages
before(async () => {
  images = await startSignedImages()
})
after(() => images[Symbol.asyncDispose]())

const rowsWhere = (which: Sql) => images.registry.app.db.all<Json>(sql`SELECT * FROM signed_statements WHERE ${which}`)

/** Runs the deletion and restores the signed statements. A server without support for signers leaves them. */
async function leaving(which: Sql, work: () => Promise<unknown>): Promise<void> {
  const left = await rowsWhere(which)
  await work()
  const kept = new Set((await rowsWhere(which)).map(({ id }) => String(id)))
  await images.registry.app.db.tx(async (tx) => {
    for (const one of left.filter(({ id }) => !kept.has(String(id)))) {
      await tx.run(sql`
        INSERT INTO signed_statements (repo_uid, digest, vulnerability, package, signer_uid, status, stated, statement,
                                       said_time, from_time, until_time)
        VALUES (${one.repo_uid}, ${one.digest}, ${one.vulnerability}, ${one.package}, ${one.signer_uid}, ${one.status},
                ${one.stated}, ${one.statement}, ${one.said_time}, ${one.from_time}, ${one.until_time})`)
      await addBytes(tx, String(one.repo_uid), 1024)
    }
  })
}

test('deletes the statements about a deleted image, except those that withdraw others', async () => {
  const keys = keysOf.ed25519!()
  await images.trusted(keys)
  const [digest, stays] = [await images.image('left'), await images.image('stays')]
  for (const one of [digest, stays]) {
    await images.says(one, keys, [said('CVE-2026-1', 'fixed', [zlib]), said('CVE-2026-3', 'affected', [openssl])])
  }
  const remove = () => images.pusher.ok(202, 'DELETE', `acme/app/manifests/${digest}`)
  await leaving(sql`digest = ${digest}`, remove)
  assert.equal(await images.image('left'), digest)
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'), 'the server of before has left nothing')
  await leaving(sql`digest = ${digest}`, remove)
  await runJob(images.registry.app, sweepScanning)
  assert.deepEqual(
    (await rowsWhere(sql`digest = ${digest}`)).map(({ status }) => status),
    ['affected'],
  )
  assert.equal((await rowsWhere(sql`digest = ${stays}`)).length, 2)
  await checkUsage(images.registry)
  await images.image('left')
  assert.deepEqual(await images.counted(digest), without())
  assert.deepEqual(await images.counted(stays), without('CVE-2026-1'))
})

test('deletes all statements about a deleted repository', async () => {
  const { registry, owner } = images
  const repo = (await registry.seed.repo(registry.org.uid, { name: 'gone' })).uid
  await registry.app.db.tx(async (tx) => {
    await tx.run(sql`
      INSERT INTO signed_statements (repo_uid, digest, vulnerability, package, signer_uid, status, stated, statement,
                                     said_time, from_time)
      VALUES (${repo}, 'sha256:0', 'CVE-1', '', 'x', 'affected', '', '', '', '')`)
    await addBytes(tx, repo, 1024)
  })
  await leaving(sql`repo_uid = ${repo}`, async () => {
    ok(await owner.delete(`/registry/v2/repos/${repo}`))
    await runJob(registry.app, removeRepos)
  })
  assert.equal((await rowsWhere(sql`repo_uid = ${repo}`)).length, 1)
  await runJob(registry.app, sweepScanning)
  assert.deepEqual(await rowsWhere(sql`repo_uid = ${repo}`), [])
  await checkUsage(registry)
})
