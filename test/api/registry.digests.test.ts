// Referrers of a digest, and the identities that have pulled it.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { pushSbom } from '../support/images.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { digestOf, startRegistry, type TestRegistry } from '../support/registry.ts'

let pinfold: TestRegistry
before(async () => {
  pinfold = await startRegistry()
})
after(() => pinfold[Symbol.asyncDispose]())

/** A repo with an image. */
async function repoWith(name: string) {
  const path = `acme/${name}`
  const repo = await pinfold.seed.repo(pinfold.org.uid, { name })
  const image = await pinfold.pusher.pushImage(path, 'v1')
  return { path, image, at: `/registry/v2/repos/${repo.uid}/digests/${image.digest}` }
}

test('lists only the referrers of a digest, in pages, tagged or not', async () => {
  const { path, image, at } = await repoWith('signed')
  assert.deepEqual(ok(await pinfold.operator.get(`${at}/referrers`)), {
    ...{ referrers: [], nextPageToken: '' },
    ...{ totalCount: '0', skipped: 0 },
  })
  const made: string[] = []
  for (const text of ['one', 'two', 'three']) {
    made.push((await pushSbom(pinfold.pusher, path, image, text)).digest)
  }
  await pushSbom(pinfold.pusher, path, await pinfold.pusher.pushImage(path, 'v2'), 'of another')
  const first = ok(await pinfold.operator.get(`${at}/referrers?pageSize=2`))
  const second = ok(await pinfold.operator.get(`${at}/referrers?pageSize=2&pageToken=${first.nextPageToken}`))
  const all: Json[] = [...first.referrers, ...second.referrers]
  assert.deepEqual(
    all.map(({ digest }) => digest),
    made.sort(),
  )
  assert.deepEqual([first.referrers.length, second.nextPageToken], [2, ''])
  const listed = (await pinfold.pusher.ok(200, 'GET', `${path}/referrers/${image.digest}`)).body.manifests as Json[]
  assert.deepEqual(
    all.map(({ digest, mediaType, artifactType, size }) => ({ mediaType, digest, size: Number(size), artifactType })),
    listed.map(({ digest, mediaType, artifactType, size }) => ({ mediaType, digest, size, artifactType })),
  )
  const unknown = ok(await pinfold.operator.get(`${at.replace(image.digest, digestOf('nothing'))}/referrers`))
  assert.deepEqual(unknown.referrers, [])
})

test('lists the identities that pulled a digest, with the number of pulls, the latest first', async () => {
  const { path, image, at } = await repoWith('pulled')
  assert.deepEqual(ok(await pinfold.operator.get(`${at}/pulls`)), { pullers: [] })
  const pull = (client: { ok: typeof pinfold.pusher.ok }, verb = 'GET') =>
    client.ok(200, verb, `${path}/manifests/${image.digest}`)
  await pull(pinfold.pusher)
  await pull(pinfold.pusher, 'HEAD')
  await pull(pinfold.puller)
  await pinfold.app.usage.flush()
  // The second pull can be within the same millisecond, so the test sets a later time.
  const later = { digest: image.digest, now: new Date(Date.now() + 5000).toISOString() }
  const repo = await repoIdOf(path)
  pinfold.app.usage.note(repo, later.digest, pinfold.puller.uid, 'GET', later.now)
  pinfold.app.usage.note(repo, later.digest, '', 'GET', '2026-01-02T00:00:00.000Z')
  await pinfold.app.usage.flush()
  const { lastTime, pullers } = ok(await pinfold.operator.get(`${at}/pulls`))
  assert.equal(lastTime, later.now)
  assert.deepEqual(
    pullers.map(({ caller, gets, checks }: Json) => [caller, gets, checks]),
    [
      [pinfold.puller.uid, '2', '0'],
      [pinfold.pusher.uid, '1', '1'],
      ['', '1', '0'],
    ],
  )
  assert.ok(pullers[0].callerName !== '' && pullers[2].callerName === '', JSON.stringify(pullers))
  assert.equal(pullers[0].lastTime, later.now)
})

async function repoIdOf(path: string): Promise<number> {
  const name = path.slice(path.indexOf('/') + 1)
  return (await pinfold.app.db.get<{ id: number }>(sql`SELECT id FROM repos WHERE name = ${name}`))!.id
}

test('counts only the newest seven days with pulls, and hides identities from callers without permission to list them', async () => {
  const { path, image, at } = await repoWith('old')
  const repo = await repoIdOf(path)
  for (let day = 1; day <= 9; day++) {
    pinfold.app.usage.note(repo, image.digest, pinfold.puller.uid, 'GET', `2026-03-0${day}T10:00:00.000Z`)
  }
  await pinfold.app.usage.flush()
  const told = ok(await pinfold.operator.get(`${at}/pulls`))
  assert.deepEqual([told.lastTime, told.pullers[0].gets], ['2026-03-09T10:00:00.000Z', '7'])
  const role = await pinfold.seed.role(pinfold.org.uid, ['CAP_MANIFEST_LIST', 'CAP_REPO_LIST'])
  const looker = await pinfold.as((await pinfold.seed.member(pinfold.org.uid, role.uid)).uid)
  assert.deepEqual(ok(await looker.get(`${at}/pulls`)), { lastTime: '2026-03-09T10:00:00.000Z', pullers: [] })
})

test('names the field of an invalid digest, and denies callers without access', async () => {
  const { at, image } = await repoWith('asked')
  const stranger = await pinfold.as((await pinfold.seed.identity((await pinfold.seed.group()).uid)).uid)
  const viewer = await pinfold.as((await pinfold.seed.member(pinfold.org.uid, roleUids.viewer)).uid)
  for (const what of ['referrers', 'pulls']) {
    assertInvalid(await pinfold.operator.get(`${at.replace(image.digest, 'sha256:short')}/${what}`), 'digest')
    assertDenied(await stranger.get(`${at}/${what}`))
    ok(await viewer.get(`${at}/${what}`))
    const gone = `${pinfold.org.uid}/${'0'.repeat(16)}`
    const missing = await pinfold.operator.get(`/registry/v2/repos/${gone}/digests/${image.digest}/${what}`)
    assertNotFound(missing, 'registry.pinfold.dev/Repo', gone)
  }
})
