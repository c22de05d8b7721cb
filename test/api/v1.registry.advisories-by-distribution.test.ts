// Advisories of the public organization are about certain distributions. Packages of other distributions are not compared with
// them.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { readAdvisories } from '../../src/cli/imports/advisory-yaml.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { fixture } from '../support/fixtures.ts'
import type { LayerEntries } from '../support/layers.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { pushAndScan } from '../support/scanning.ts'

let registry: TestRegistry
let repo: string
let publicOrg: string
let owner: string
before(async () => {
  registry = await startRegistry({ advisoryEcosystems: ['Wolfi'] })
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  publicOrg = (await registry.seed.group('', { name: registry.app.config.publicOrg })).uid
  owner = (await registry.seed.member(registry.org.uid, roleUids.owner)).uid
})
after(() => registry[Symbol.asyncDispose]())

const installed = (osRelease: string): LayerEntries => ({
  'etc/os-release': osRelease,
  'lib/apk/db/installed': fixture('contents/alpine-3.10/installed').toString(),
})
const alpine = installed(fixture('contents/alpine-3.10/os-release').toString())
const wolfi = installed('ID=wolfi\nVERSION_ID=20230201\n')

async function idsOf(digest: string): Promise<string[]> {
  const viewer = await registry.as(owner)
  const { findings } = ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${digest}/findings`))
  return [...new Set(findings.flatMap(({ vulnerabilities }: Json) => vulnerabilities as string[]))].sort() as string[]
}

const push = (layer: LayerEntries, tag: string) => pushAndScan(registry, 'acme/app', layer, tag)
const inWolfi = ['CVE-2018-25032', 'CVE-2022-37434', 'CVE-2023-45853']

let images: { alpine: string; wolfi: string }
test('advisories for another distribution do not apply to an Alpine image, but to an image of that distribution', async () => {
  const text = fixture('advisories/zlib.advisories.yaml').toString()
  const { records } = readAdvisories('zlib.advisories.yaml', text, 'import')
  const advisories = records.map(({ body }) => body)
  const operator = await registry.as(operatorUid)
  ok(await operator.post('/control/v1/advisories:import', { parent: publicOrg, advisories }))
  images = { alpine: await push(alpine, 'alpine'), wolfi: await push(wolfi, 'wolfi') }
  assert.deepEqual(await idsOf(images.alpine), [])
  assert.deepEqual(await idsOf(images.wolfi), inWolfi)
})

test('changed distribution settings also apply to earlier advisories', async () => {
  const withSettings = async (advisoryEcosystems: string[]) => {
    const app = { ...registry.app, config: { ...registry.app.config, advisoryEcosystems } }
    await runJob(app, matchPackages)
    return [await idsOf(images.alpine), await idsOf(images.wolfi)]
  }
  assert.deepEqual(await withSettings(['Alpine']), [inWolfi, []])
  assert.deepEqual(await withSettings(['Alpine:v3.19', 'PyPI', 'Debian']), [[], []])
  assert.deepEqual(await withSettings([]), [[], []])
  assert.deepEqual(await withSettings(['Alpine:v3.10', 'Wolfi']), [inWolfi, inWolfi])
})
