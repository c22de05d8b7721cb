// Language packages that came with a distribution package do not count where the distribution has fixed them, and show the
// reason.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { verifyStep } from '#domains/scanning/findings/verify.service.ts'
import { ok } from '../support/expect.ts'
import type { LayerEntries } from '../support/layers.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, pythonPackage, readSource, recordAbout } from '../support/scanning.ts'

let now = new Date('2026-03-01T08:00:00Z')
let registry: TestRegistry
let repo: string
let owner: string
let viewer: Client
before(async () => {
  registry = await startRegistry({ clock: () => now })
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  owner = (await registry.seed.member(registry.org.uid, roleUids.owner)).uid
  await at(1)
})
after(() => registry[Symbol.asyncDispose]())

async function at(day: number): Promise<void> {
  now = new Date(`2026-03-0${day}T08:00:00Z`)
  viewer = await registry.as(owner)
}

const alpine = 'Alpine:v3.19'
const files = pythonPackage('flask', '2.0.0')
const folder = 'usr/lib/python3.12/site-packages/flask-2.0.0.dist-info'
/** With `owned`, the Alpine package claims to have installed the files. */
function imageOf(version: string, owned: boolean): LayerEntries {
  const layer = apkLayer('alpine', '3.19.1', [`py3-flask ${version}`])
  const database = `${String(layer['lib/apk/db/installed'])}${owned ? `F:${folder}\nR:METADATA\n` : ''}`
  return { ...layer, ...files, 'lib/apk/db/installed': database }
}
const push = (layer: LayerEntries, tag: string) => pushAndScan(registry, 'acme/app', layer, tag)
const idsOf = async (digest: string): Promise<string[]> => {
  const [report] = ok(await viewer.get(`/registry/v1/vuln_reports?digest=${digest}`)).items as Json[]
  return (report?.vulnerabilities ?? []).map(({ id }: Json) => id)
}
const findingsOf = async (digest: string): Promise<Json[]> =>
  ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${digest}/findings`)).findings
async function differences(): Promise<string[]> {
  const found: string[] = []
  for (let from = 'c:0'; from !== ''; ) {
    const { differences: some, next } = await verifyStep(registry.app, from)
    found.push(...some)
    from = next
  }
  return found
}

let owned: string
let own: string
test('a vulnerability fixed by the distribution in its package is not counted, and is shown with the reason', async () => {
  await readSource(registry.app, 'PyPI', [
    recordAbout('GHSA-aaaa', 'PyPI', 'flask', '3.0.0', { aliases: ['CVE-2026-1'] }),
    recordAbout('GHSA-bbbb', 'PyPI', 'flask', '3.0.0', { aliases: ['CVE-2026-2'] }),
  ])
  await readSource(registry.app, alpine, [
    recordAbout('ALPINE-CVE-2026-1', alpine, 'py3-flask', '2.0.0-r3', { upstream: ['CVE-2026-1'] }),
  ])
  owned = await push(imageOf('2.0.0-r3', true), 'owned')
  own = await push(imageOf('2.0.0-r3', false), 'own')
  assert.deepEqual(await idsOf(owned), ['CVE-2026-2'])
  assert.deepEqual(await idsOf(own), ['CVE-2026-1', 'CVE-2026-2'])
  const [fixed, other] = await findingsOf(owned)
  assert.deepEqual(fixed!.suppressedBy, {
    purl: 'pkg:apk/alpine/py3-flask@2.0.0-r3?arch=x86_64',
    source: 'osv/Alpine:v3.19',
    record: 'ALPINE-CVE-2026-1',
    fromTime: '2026-03-01T08:00:00.000Z',
  })
  assert.equal(other!.suppressedBy ?? null, null)
  assert.deepEqual(
    (await findingsOf(own)).map(({ suppressedBy }) => suppressedBy ?? null),
    [null, null],
  )
  assert.deepEqual(await differences(), [])
})

test('a distribution package older than the fix hides no vulnerability', async () => {
  const digest = await push(imageOf('2.0.0-r2', true), 'before')
  assert.deepEqual(await idsOf(digest), ['CVE-2026-1', 'CVE-2026-2'])
})

test('later distribution statements apply from then on, also to older images, and do not change past days', async () => {
  const counts = async () => {
    const range = 'from=2026-03-01T00:00:00Z&to=2026-03-09T00:00:00Z'
    const { items } = ok(await viewer.get(`/registry/v1/vuln_reports/counts?repo=app&tag=owned&${range}`))
    return items.map(({ date, cveIds }: Json) => `${date.slice(8, 10)} ${cveIds.map((id: string) => id.slice(-1))}`)
  }
  await at(2)
  const notAffected = recordAbout('ALPINE-CVE-2026-2', alpine, 'py3-flask', '', { upstream: ['CVE-2026-2'] })
  const said = notAffected.affected.map((one) => ({ ...one, ranges: [], state: 'not_affected' as const }))
  await readSource(registry.app, alpine, [{ ...notAffected, affected: said }])
  assert.deepEqual(await idsOf(owned), [])
  assert.deepEqual(await idsOf(own), ['CVE-2026-1', 'CVE-2026-2'])
  assert.deepEqual(await counts(), ['01 2', '02 '])
  assert.deepEqual(await differences(), [])
  await at(3)
  await readSource(registry.app, alpine, [{ ...notAffected, withdrawTime: now.toISOString() }])
  assert.deepEqual(await idsOf(owned), ['CVE-2026-2'])
  assert.deepEqual(await counts(), ['01 2', '02 ', '03 2'])
  await at(4)
  await readSource(registry.app, alpine, [
    recordAbout('ALPINE-CVE-2026-1', alpine, 'py3-flask', '2.0.0-r9', { upstream: ['CVE-2026-1'] }),
  ])
  assert.deepEqual(await idsOf(owned), ['CVE-2026-1', 'CVE-2026-2'])
  assert.deepEqual(await differences(), [])
})
