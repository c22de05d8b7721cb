// Summaries of images, repositories and groups: facts for lists, and which of them a caller can see.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { pushSbom } from '../support/images.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { digestOf, imageOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

let registry: TestRegistry
let [shop, app, older, newer] = ['', '', '', '']
let viewer: Client
before(async () => {
  registry = await startRegistry()
  const { seed, org } = registry
  shop = (await seed.group(org.uid, { name: 'shop' })).uid
  app = (await seed.repo(shop, { name: 'payments' })).uid
  await seed.repo(shop, { name: 'unused' })
  viewer = await registry.as((await seed.member(org.uid, roleUids.viewer)).uid)
  const severities = [{ type: 'CVSS_V3' as const, vector: 'CVSS:3.1/AV:N', score: 9.8, source: '' }]
  await readSource(registry.app, 'Alpine:v3.19', [
    recordAbout('CVE-2026-1', 'Alpine:v3.19', 'openssl', '3.1.4-r5', {
      summary: 'Heap overflow\nwith details',
      severities,
    }),
    recordAbout('CVE-2026-2', 'Alpine:v3.19', 'openssl', '3.1.4-r6'),
  ])
  older = await push(['musl 1.2.4-r2'], 'v1')
  newer = await push(['libssl3 3.1.4-r2 openssl', 'musl 1.2.4-r2'], 'v2')
})
after(() => registry[Symbol.asyncDispose]())

const push = (lines: string[], tag: string) =>
  pushAndScan(registry, 'acme/shop/payments', apkLayer('alpine', '3.19.1', lines), tag)

const summariesOf = async (digests: string[], client = viewer): Promise<Json[]> =>
  ok(await client.get(`/registry/v2/repos/${app}/imageSummaries?digests=${digests.join(',')}`)).images

const scopesOf = async (uids: string[], client = viewer): Promise<Json[]> =>
  ok(await client.post('/registry/v2/scopeSummaries:get', { uids })).scopes

test('returns platform, size, vulnerabilities and tags of each image, in the order of the request', async () => {
  const [first, second, ...others] = await summariesOf([newer, older, digestOf('nothing')])
  assert.deepEqual(others, [])
  assert.equal(first!.digest, newer)
  assert.deepEqual([first!.platforms, first!.tags, first!.signatures], [['linux/amd64'], ['v2'], 0])
  assert.ok(Number(first!.size) > 0)
  assert.deepEqual(first!.vulnerabilities, { critical: 0, high: 2, medium: 0, low: 0, unknown: 0 })
  assert.equal(first!.coverage.state, 'COMPARED')
  assert.deepEqual(second!.vulnerabilities, { critical: 0, high: 0, medium: 0, low: 0, unknown: 0 })
})

test('counts an accepted risk no longer', async () => {
  const expireTime = new Date(Date.now() + 86_400_000).toISOString()
  const risk = { vulnerability: 'CVE-2026-2', reason: 'not used', expireTime }
  const { uid } = ok(await registry.operator.post(`/registry/v2/riskAcceptances/${app}`, risk))
  assert.equal((await summariesOf([newer]))[0]!.vulnerabilities.high, 1)
  ok(await registry.operator.post(`/registry/v2/riskAcceptances/${uid}:revoke`, {}))
})

test('shows no vulnerabilities of an image that was not scanned, and the reason', async () => {
  const digest = await pushAndScan(registry, 'acme/shop/payments', { 'etc/motd': 'hello' }, 'empty')
  const [image] = await summariesOf([digest])
  assert.equal(image!.vulnerabilities, undefined)
  assert.equal(image!.coverage.state, 'NOT_SCANNED')
  assert.match(image!.coverage.summary, /^not scanned: /)
  ok(await registry.operator.delete(`/registry/v2/tags/${(await tagNamed('empty')).uid}`))
})

async function tagNamed(name: string): Promise<Json> {
  return ok(await registry.operator.get(`/registry/v2/tags?uidp.childrenOf=${app}&name=${name}`)).tags[0]
}

test('counts signatures, and no attestations', async () => {
  const client = await registry.registryAs(registry.pusher.uid)
  const { headers, bytes } = await client.ok(200, 'GET', `acme/shop/payments/manifests/${newer}`)
  const subject = { digest: newer, size: bytes.length, mediaType: String(headers['content-type']) }
  const bundle = 'application/vnd.dev.sigstore.bundle.v0.3+json'
  for (const predicate of ['https://sigstore.dev/cosign/sign/v1', 'https://slsa.dev/provenance/v1']) {
    const layer = await client.pushBlob('acme/shop/payments', `{"about":"${predicate}"}`, bundle)
    const config = await client.pushBlob('acme/shop/payments', '{}', types.empty)
    const annotations = {
      'dev.sigstore.bundle.content': 'dsse-envelope',
      'dev.sigstore.bundle.predicateType': predicate,
    }
    await client.pushManifest(
      'acme/shop/payments',
      imageOf(config, [layer], { artifactType: bundle, subject, annotations }),
    )
  }
  await pushSbom(client, 'acme/shop/payments', subject, '{"spdxVersion":"SPDX-2.3","packages":[]}')
  assert.equal((await summariesOf([newer]))[0]!.signatures, 1)
})

test('counts pulls of the last 30 days', async () => {
  const client = await registry.registryAs(registry.pusher.uid)
  const before = Number((await summariesOf([older]))[0]!.recentPulls)
  await client.ok(200, 'GET', `acme/shop/payments/manifests/${older}`)
  await registry.app.usage.flush()
  assert.equal(Number((await summariesOf([older]))[0]!.recentPulls), before + 1)
})

test('leaves out vulnerabilities and pulls for a caller without permission for them', async () => {
  const capabilities = ['CAP_REPO_LIST', 'CAP_TAG_LIST', 'CAP_MANIFEST_METADATA_LIST']
  const role = await registry.seed.role(registry.org.uid, capabilities)
  const lister = await registry.as((await registry.seed.member(registry.org.uid, role.uid)).uid)
  const [image] = await summariesOf([newer], lister)
  assert.deepEqual([image!.vulnerabilities, image!.coverage, image!.recentPulls], [undefined, undefined, undefined])
  assert.deepEqual(image!.platforms, ['linux/amd64'])
})

test('refuses invalid digests, too many digests and strangers', async () => {
  const path = `/registry/v2/repos/${app}/imageSummaries`
  assertInvalid(await viewer.get(path), 'digests')
  assertInvalid(await viewer.get(`${path}?digests=sha256:1`), 'digests[0]')
  const many = Array.from({ length: 51 }, (_, i) => digestOf(`${i}`)).join(',')
  assertInvalid(await viewer.get(`${path}?digests=${many}`), 'digests')
  const stranger = await registry.as((await registry.seed.identity(registry.org.uid)).uid)
  assertDenied(await stranger.get(`${path}?digests=${newer}`))
})

test('counts repositories and tags of folders and repositories, with the image of the newest tag', async () => {
  const [organization, folder, repo] = await scopesOf([registry.org.uid, shop, app])
  assert.deepEqual([organization!.repos, folder!.repos, repo!.repos], ['2', '2', '0'])
  assert.deepEqual([organization!.tags, repo!.tags], ['2', '2'])
  assert.deepEqual([folder!.newestTag, repo!.newestTag], ['', 'v2'])
  assert.equal(repo!.newestImage.digest, newer)
  assert.equal(repo!.newestImage.vulnerabilities.high, 2)
  assert.equal(folder!.newestImage, undefined)
  assert.equal(folder!.updateTime, repo!.updateTime)
})

test('leaves out groups and repositories that the caller cannot list', async () => {
  const other = (await registry.seed.group()).uid
  const scopes = await scopesOf([other, shop])
  assert.deepEqual(
    scopes.map(({ uid }) => uid),
    [shop],
  )
  assertInvalid(await viewer.post('/registry/v2/scopeSummaries:get', { uids: [] }), 'uids')
  assertInvalid(await viewer.post('/registry/v2/scopeSummaries:get', { uids: ['x'] }), 'uids[0]')
})

test('returns the layers of an image with the build steps that created them', async () => {
  const client = await registry.registryAs(registry.pusher.uid)
  const name = 'acme/shop/payments'
  const history = [{ created_by: 'COPY / /' }, { created_by: 'USER app', empty_layer: true }]
  const config = { architecture: 'arm64', os: 'linux', created: '2026-01-02T03:04:05Z', history }
  const pushed = await client.pushBlob(name, JSON.stringify({ ...config, config: { User: 'app' } }), types.config)
  const layer = await client.pushBlob(name, 'layer')
  const image = await client.pushManifest(name, imageOf(pushed, [layer]))
  const index = { schemaVersion: 2, mediaType: types.index, manifests: [{ ...image, platform: config }] }
  const listed = await client.pushManifest(name, index)
  const found = ok(await viewer.get(`/registry/v2/repos/${app}/digests/${listed.digest}/layers`))
  assert.deepEqual([found.digest, found.architecture, found.architectures], [image.digest, 'arm64', ['arm64']])
  assert.deepEqual([found.created, found.user], ['2026-01-02T03:04:05Z', 'app'])
  const steps = found.steps.map(({ command, digest, size }: Json) => [command, digest, size])
  assert.deepEqual(steps, [
    ['COPY / /', layer.digest, '5'],
    ['USER app', '', '0'],
  ])
  const path = `/registry/v2/repos/${app}/digests/${listed.digest}/layers`
  const missing = await viewer.get(`${path}?architecture=riscv64`)
  assertNotFound(missing, 'registry.pinfold.dev/Image', `${listed.digest} for riscv64`)
  const [summary] = await summariesOf([listed.digest])
  assert.deepEqual(summary!.platforms, ['linux/arm64/v8'])
})

test('shows the title and the CVSS score of a finding', async () => {
  const { findings } = ok(await viewer.get(`/registry/v2/repos/${app}/digests/${newer}/findings`))
  const shown = findings.map(({ vulnerabilities, title, score }: Json) => [vulnerabilities[0], title, score])
  assert.deepEqual(shown.sort(), [
    ['CVE-2026-1', 'Heap overflow', 9.8],
    ['CVE-2026-2', '', undefined],
  ])
})

test('counts the images of a group by their worst severity, with the age of the data sources', async () => {
  const overview = ok(await viewer.get(`/registry/v2/imageOverview/${registry.org.uid}`))
  assert.deepEqual([overview.examined, overview.tags, overview.incomplete], [2, '2', false])
  assert.deepEqual(overview.images, { critical: 0, high: 1, medium: 0, low: 0, unknown: 0 })
  assert.deepEqual([overview.clean, overview.partial, overview.notScanned], [1, 0, 0])
  const [worst] = overview.worst
  assert.deepEqual([worst.path, worst.tag, worst.digest], ['acme/shop/payments', 'v2', newer])
  const sources = overview.sources.map(({ name, problem }: Json) => [name, problem])
  assert.deepEqual(sources, [['osv/Alpine:v3.19', '']])
})

test('an overview names the reasons why images were not scanned, and counts no such image as clean', async () => {
  const lone = (await registry.seed.group(registry.org.uid, { name: 'lone' })).uid
  await registry.seed.repo(lone, { name: 'python' })
  await pushAndScan(registry, 'acme/lone/python', { 'etc/motd': 'hello' }, 'v1')
  const overview = ok(await viewer.get(`/registry/v2/imageOverview/${lone}`))
  assert.deepEqual([overview.examined, overview.clean, overview.notScanned], [1, 0, 1])
  assert.equal(overview.reasons[0].images, 1)
  assert.match(overview.reasons[0].text, /package/)
})

test('counts images that a policy in dry run would deny, and none of an enforced policy', async () => {
  const vulnerabilities = { leastSeverity: 'HIGH' }
  const { operator, org } = registry
  ok(await operator.post(`/registry/v2/gates/${org.uid}`, { name: 'tried', mode: 'DRY_RUN', vulnerabilities }))
  ok(await operator.post(`/registry/v2/gates/${org.uid}`, { name: 'enforced', mode: 'ENFORCE', vulnerabilities }))
  const owner = await registry.as((await registry.seed.member(org.uid, roleUids.owner)).uid)
  const { policies, examined } = ok(await owner.get(`/registry/v2/dryRunOverview/${shop}`))
  assert.equal(examined, 2)
  const shown = policies.map(({ name, denied, examples }: Json) => ({ name, denied, examples }))
  assert.deepEqual(shown, [{ name: 'tried', denied: 1, examples: ['acme/shop/payments:v2'] }])
})

test('refuses the overviews to a caller without permission in the group', async () => {
  const role = await registry.seed.role(registry.org.uid, ['CAP_REPO_LIST', 'CAP_TAG_LIST'])
  const lister = await registry.as((await registry.seed.member(registry.org.uid, role.uid)).uid)
  assertDenied(await lister.get(`/registry/v2/imageOverview/${shop}`))
  assertDenied(await lister.get(`/registry/v2/dryRunOverview/${shop}`))
})

test('lists the last tag updates with their actor, and the vulnerabilities before and after', async () => {
  const repo = (await registry.seed.repo(shop, { name: 'moved' })).uid
  const layer = (lines: string[]) => apkLayer('alpine', '3.19.1', lines)
  const first = await pushAndScan(registry, 'acme/shop/moved', layer(['libssl3 3.1.4-r2 openssl']), 'stable')
  const second = await pushAndScan(registry, 'acme/shop/moved', layer(['libssl3 3.1.4-r7 openssl']), 'stable')
  const [update, ...others] = ok(await viewer.get(`/registry/v2/tagUpdates/${shop}?limit=2`)).updates
  assert.equal(others.length, 1)
  const { repoUid, path, tag, digest, previousDigest, actor } = update
  assert.deepEqual([repoUid, path, tag], [repo, 'acme/shop/moved', 'stable'])
  assert.deepEqual([digest, previousDigest, actor], [second, first, registry.pusher.uid])
  assert.notEqual(update.actorName, '')
  assert.deepEqual([update.vulnerabilities.high, update.previousVulnerabilities.high], [0, 2])
  assertInvalid(await viewer.get(`/registry/v2/tagUpdates/${shop}?limit=51`), 'limit')
  const role = await registry.seed.role(registry.org.uid, ['CAP_REPO_LIST', 'CAP_TAG_LIST'])
  const lister = await registry.as((await registry.seed.member(registry.org.uid, role.uid)).uid)
  const [bare] = ok(await lister.get(`/registry/v2/tagUpdates/${shop}`)).updates
  assert.deepEqual([bare.digest, bare.vulnerabilities, bare.previousVulnerabilities], [second, undefined, undefined])
})
