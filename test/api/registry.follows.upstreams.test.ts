// Real registries as upstreams: another Pinfold server, and CNCF distribution if its binary is available.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fetchFollowed } from '#domains/mirrors/follows/fetches.job.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { freePort } from '../support/ports.ts'
import { indexOf, type RegistryClient, registryClient, startRegistry } from '../support/registry.ts'
import { localUpstreams } from '../support/upstream.ts'

const minute = 60_000
let shift = 0
const here = await startRegistry({ ...localUpstreams, monotonic: () => performance.now() * 1000 + shift })
after(() => here[Symbol.asyncDispose]())
const { operator, org, seed, app } = here
const later = { ...app, clock: () => new Date(Date.now() + shift) }

/** Mirrors the pushed images with the account, and checks the tag history. */
async function watch(url: string, path: string, there: RegistryClient, account: Json) {
  const name = `from-${shift}-${path.replaceAll('/', '-')}`
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, { name, url, ...account }))
  const repo = (await seed.repo(org.uid, { name })).uid as string
  const first = await there.pushImage(path, '1.0')
  await there.pushImage(path, 'edge')
  ok(await operator.post(`/registry/v2/repos/${repo}/follow`, { upstreamUid: upstream.uid, path }))
  assert.deepEqual(await runJob(later, followUpstreams), { looks: 2, moves: 2, failed: 0 })
  const second = await there.pushImage(path, '1.0')
  shift += 61 * minute
  assert.deepEqual(await runJob(later, followUpstreams), { looks: 2, moves: 1, failed: 0 })
  const { records } = ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=1.0`))
  assert.deepEqual(
    records.map((one: Json) => [one.digest, one.source, one.checkedBefore !== undefined]),
    [
      [second.digest, 'SOURCE_UPSTREAM', true],
      [first.digest, 'SOURCE_UPSTREAM', false],
    ],
  )
  ok(await operator.delete(`/registry/v2/repos/${repo}/follow`))
}

/** Copies an image and its referrers completely, ahead and at a pull. `lists` is true if the registry supports referrers. */
async function mirror(url: string, path: string, there: RegistryClient, account: Json, lists: boolean) {
  for (const mode of ['full', 'on-demand']) {
    const name = `${mode}-${shift}-${path.replaceAll('/', '-')}`
    const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, { name, url, ...account }))
    const repo = (await seed.repo(org.uid, { name })).uid as string
    const image = await there.pushImage(path, mode)
    const about = await there.pushImage(path, undefined, { subject: image, artifactType: 'application/x-signature' })
    if (!lists) await there.pushManifest(path, indexOf([about]), image.digest.replace(':', '-'))
    const asked = {
      upstreamUid: upstream.uid,
      path,
      mode: `MODE_${mode.toUpperCase().replace('-', '_')}`,
      tags: [mode],
    }
    ok(await operator.post(`/registry/v2/repos/${repo}/follow`, asked))
    const pull = (what: string) => here.puller.ok(200, 'GET', `acme/${name}/${what}`)
    const pullAll = async (digest: string) => {
      const { body } = await pull(`manifests/${digest}`)
      for (const blob of [body.config, ...body.layers]) await pull(`blobs/${blob.digest}`)
    }
    if (mode === 'on-demand') {
      await pull(`manifests/${mode}`)
      await pullAll(image.digest)
    }
    await runJob(later, followUpstreams)
    await runJob(later, fetchFollowed)
    const followed = ok(await operator.get(`/registry/v2/repos/${repo}/follow`))
    assert.deepEqual([followed.waitingCount, followed.fetchProblem], [0, ''])
    // The upstream gets no requests from here on.
    ok(await operator.delete(`/registry/v2/repos/${repo}/follow`))
    assert.equal((await pull(`manifests/${mode}`)).headers['docker-content-digest'], image.digest)
    for (const { digest } of [image, about]) await pullAll(digest)
    const { manifests } = (await pull(`referrers/${image.digest}`)).body
    assert.deepEqual(
      manifests.map(({ digest }: Json) => digest),
      [about.digest],
    )
  }
}

test('mirrors another Pinfold server with a push token, through its token endpoint', async () => {
  await using there = await startRegistry()
  const made = ok(await there.operator.post(`/control/v1/pushTokens/${there.org.uid}`, { name: 'mirror' }))
  const account = { username: made.pushToken.userName, password: made.secret }
  await watch(there.url, 'acme/app', there.registryOperator, account)
  await mirror(there.url, 'acme/app', there.registryOperator, account, true)
})

test('a private registry cannot be mirrored without credentials', async () => {
  await using there = await startRegistry()
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, { name: 'closed', url: there.url }))
  const repo = (await seed.repo(org.uid)).uid as string
  await there.registryOperator.pushImage('acme/app', '1.0')
  const follow = { upstreamUid: upstream.uid, path: 'acme/app', tags: ['1.0'] }
  ok(await operator.post(`/registry/v2/repos/${repo}/follow`, follow))
  const looked = await runJob(later, followUpstreams)
  assert.deepEqual([looked.moves, looked.failed], [0, 1])
  ok(await operator.delete(`/registry/v2/repos/${repo}/follow`))
})

const distribution = process.env.PINFOLD_TEST_DISTRIBUTION

test('mirrors a registry of CNCF distribution', {
  skip: !distribution && 'no PINFOLD_TEST_DISTRIBUTION',
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-distribution-'))
  const port = await freePort()
  const config = [
    'version: 0.1',
    `storage: { filesystem: { rootdirectory: ${folder}/data } }`,
    `http: { addr: "127.0.0.1:${port}" }`,
  ]
  writeFileSync(join(folder, 'config.yml'), config.join('\n'))
  const child = spawn(distribution!, ['serve', join(folder, 'config.yml')], { stdio: 'ignore' })
  try {
    const there = registryClient(`http://127.0.0.1:${port}`, undefined)
    const isUp = async () => (await there.call('GET', '/v2/').catch(() => undefined))?.status === 200
    for (let i = 0; i < 600 && !(await isUp()); i++) await sleep(100)
    await watch(there.origin, 'team/app', inTwoRequests(there), {})
    await mirror(there.origin, 'team/app', inTwoRequests(there), {}, false)
  } finally {
    child.kill()
    await new Promise((resolve) => child.once('exit', resolve))
    rmSync(folder, { recursive: true, force: true })
  }
})

/** Uploads in the form that each registry accepts: one request starts the upload, and another completes it. */
function inTwoRequests(client: RegistryClient): RegistryClient {
  return {
    ...client,
    async pushBlob(name, content, mediaType = 'application/octet-stream') {
      const begun = await client.ok(202, 'POST', `${name}/blobs/uploads/`)
      const url = new URL(String(begun.headers.location), client.origin)
      const { createHash } = await import('node:crypto')
      const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`
      url.searchParams.set('digest', digest)
      const headers = { 'content-type': 'application/octet-stream' }
      await client.ok(201, 'PUT', url.pathname + url.search, { body: content, headers })
      return { mediaType, digest, size: Buffer.byteLength(content) }
    },
  }
}
