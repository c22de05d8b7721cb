// Lists of our own packages under `/v2/` paths. The same paging code reads all of them.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { getOption } from '@bufbuild/protobuf'
import { services } from '#api/services.ts'
import { sweepRetention } from '#domains/policy/retention/plans.job.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { addReported } from '#domains/registry/tags/upstream-history.store.ts'
import { readReports } from '#domains/scanning/signers/read-reports.job.ts'
import { http } from '#gen/google/api/annotations_pb.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { pushSbom } from '../support/images.ts'
import { checkList, type Listing } from '../support/paginator.ts'
import type { Client, Json } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'
import { localUpstreams } from '../support/upstream.ts'

/** Lists of our own packages under the path of the registry. */
const methods = services.flatMap(({ desc }) => {
  return desc.methods.flatMap((method) => {
    const { pattern } = getOption(method, http)
    const template = pattern.case === 'get' ? pattern.value : ''
    const isOurs = desc.typeName.startsWith('pinfold.control.') && template.startsWith('/registry/v2/')
    return isOurs && /^(?:List|Search)/.test(method.name) ? [{ name: method.name, template }] : []
  })
})

let registry: TestRegistry
let owner: Client
let repo = ''
let digest = ''
let plan = ''
let gone = ''
let now = Date.parse('2026-03-01T08:00:00.000Z')
const three = [0, 1, 2] as const
const inDays = (days: number): string => new Date(now + days * 86_400_000).toISOString()

before(async () => {
  // Each clock reading returns a later time, so few times are equal.
  const clock = () => {
    now += 1
    return new Date(now)
  }
  registry = await startRegistry({ clock, ...localUpstreams })
  const { seed, org } = registry
  repo = (await seed.repo(org.uid, { name: 'app' })).uid
  owner = await registry.as(operatorUid)
  await readSource(registry.app, 'Alpine:v3.19', [recordAbout('CVE-2026-1', 'Alpine:v3.19', 'zlib', '1.2.13-r0')])
  for (const i of three) {
    const lines = ['zlib 1.2.11-r0', `curl 8.${i}-r0`, `musl 1.2.${i}-r0`]
    digest = await pushAndScan(registry, 'acme/app', apkLayer('alpine', '3.19.1', lines), `v${i}`)
  }
  await plantRules()
  await plantReports()
  await plantFollows()
  await plantPlans()
})
after(() => registry[Symbol.asyncDispose]())

const post = async (path: string, body: object): Promise<Json> => ok(await owner.post(`/registry/v2/${path}`, body))

async function plantRules(): Promise<void> {
  const everybody = { belowGroup: registry.org.uid, minAge: '1d', mode: 'OBSERVE' }
  const key = [
    ...['-----BEGIN PUBLIC KEY-----', 'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEd54YHJuX0W20JomTfSzaJMFe0gqP'],
    ...['UhnHFj/UCqO5feroesjqW/KKtAo58my1Lu43h55C4NXhJtLL/+vk+LO4kg==', '-----END PUBLIC KEY-----'],
  ].join('\n')
  for (const i of three) {
    const reason = `reason ${i}`
    await post(`retentionRules/${repo}`, { name: `r${i}`, tags: [`r${i}-*`], keepDaysAfter: 1, mode: 'ENFORCE' })
    await post(`tagRules/${repo}`, { name: `t${i}`, tags: [`t${i}-*`], immutable: true })
    const { uid } = await post(`holds/${repo}`, { tags: [`h${i}-*`], reason })
    if (i === 1) await post(`holds/${uid}:release`, {})
    await post(`quarantined/${repo}:quarantine`, { digest: `sha256:${String(i).repeat(64)}`, reason })
    await post(`pullRules/${repo}`, { name: `p${2 - i}`, ...everybody })
    const exception = { digest, reason, expireTime: inDays(9 - i) }
    await post(`pullRuleExceptions/${repo}`, exception)
    await post(`gates/${repo}`, { name: `g${2 - i}`, cooldown: { minAgeDays: 1 } })
    const { uid: ended } = await post(`gateExceptions/${repo}`, exception)
    if (i === 1) await post(`gateExceptions/${ended}:revoke`, {})
    await post(`riskAcceptances/${repo}`, { vulnerability: `CVE-2020-${i}`, reason, expireTime: inDays(9 - i) })
    const scope = i === 0 ? repo : (await registry.seed.group(registry.org.uid, { name: `signers${i}` })).uid
    await post(`vexSigners/${scope}`, { name: `s${2 - i}`, publicKey: key, reason, expireTime: inDays(9) })
  }
}

async function plantReports(): Promise<void> {
  for (const i of three) {
    const statements = [1, 2].map((j) => ({ vulnerability: { name: `CVE-${i}-${j}` }, status: 'fixed', products: [] }))
    const document = { '@context': 'https://openvex.dev/ns/v0.2.0', author: `a${i}`, version: 1, statements }
    const report = Buffer.from(JSON.stringify(document)).toString('base64')
    await post(`repos/${repo}/digests/${digest}/scanReports`, { report })
    await runJob(registry.app, readReports)
    const image = { mediaType: 'application/vnd.oci.image.manifest.v1+json', digest, size: 1 }
    await pushSbom(registry.pusher, 'acme/app', image, `text ${i}`)
  }
}

async function plantFollows(): Promise<void> {
  const { org, seed, app } = registry
  const { uid } = await post(`upstreams/${org.uid}`, { name: 'hub', url: 'http://127.0.0.1:9' })
  for (const i of three) {
    const followed = (await seed.repo(org.uid, { name: `followed${i}` })).uid
    ok(await owner.post(`/registry/v2/repos/${followed}/follow`, { upstreamUid: uid, path: `library/f${i}`, tags: [] }))
  }
  const { ledger } = (await findRepoRow(app.db, { uid: repo }))!
  const teller = { ledger, upstream: uid, origin: 'https://registry.example.com', path: 'library/app' }
  const times = three.map((i) => `2025-0${i + 1}-01T00:00:00.000Z`)
  const moves = times.map((time, i) => {
    return { time, digest: `sha256:${String(i).repeat(64)}`, isDeletion: false, checkedBefore: '' }
  })
  await app.db.tx(async (tx) => {
    await addReported(tx, teller, 'one', moves, inDays(0))
    await addReported(tx, teller, 'two', moves, inDays(0))
  })
}

async function plantPlans(): Promise<void> {
  const { org, seed, app } = registry
  const folder = (await seed.group(org.uid, { name: 'cleared' })).uid
  await seed.repo(folder, { name: 'app' })
  await post(`retentionRules/${folder}`, { name: 'short', untaggedDays: 1, mode: 'ENFORCE' })
  for (const _ of three) await registry.pusher.pushImage('acme/cleared/app')
  for (const i of three) {
    gone = (await seed.repo(org.uid, { name: `gone${i}` })).uid
    await registry.pusher.pushImage(`acme/gone${i}`, 'latest')
    ok(await owner.delete(`/registry/v2/repos/${gone}`))
  }
  now += 40 * 86_400_000
  owner = await registry.as(operatorUid)
  for (const scope of [repo, org.uid, folder]) plan = (await post(`retentionPlans/${scope}`, {})).uid
  await runJob(app, sweepRetention)
}

/** Each list with the least number of its items. */
function listings(): [Listing, least: number][] {
  const at = `/registry/v2/repos/${repo}`
  const image = `${at}/digests/${digest}`
  const own = (name: string, member = name, query = ''): Listing => ({ path: `/registry/v2/${name}`, member, query })
  return [
    [own('retentionRules'), 4],
    [own('retentionRules', 'retentionRules', `scope_uid=${repo}`), 3],
    [own('tagRules'), 3],
    [own('holds'), 2],
    [own('holds', 'holds', 'include_ended=true'), 3],
    [own('quarantined'), 3],
    [own('pullRules'), 3],
    [own('pullRuleExceptions', 'pullRuleExceptions', 'include_ended=true'), 3],
    [own('gates'), 3],
    [own('gateExceptions', 'gateExceptions', 'include_ended=true'), 3],
    [own('gates', 'gates', `scope_uid=${registry.org.uid}`), 3],
    [own('holds', 'holds', `scope_uid=${repo}`), 2],
    [own('gateExceptions', 'gateExceptions', `include_ended=true&scope_uid=${registry.org.uid}`), 3],
    [own('gateExceptions', 'gateExceptions', `include_ended=true&scope_uid=${repo}`), 3],
    [own('riskAcceptances', 'riskAcceptances', 'include_ended=true'), 3],
    [own('vexSigners', 'vexSigners', 'include_ended=true'), 3],
    [own('retentionPlans'), 3],
    [own(`retentionPlans/${plan}/deletions`, 'deletions'), 3],
    [own('deletedRepos'), 3],
    [own(`deletedRepos/${gone}/tagHistory`, 'records'), 2],
    [own('upstreams'), 1],
    [own(`follows/${registry.org.uid}`, 'follows'), 3],
    [{ path: `${at}/tagHistory`, member: 'records' }, 3],
    [{ path: `${at}/tagHistory`, member: 'records', query: 'tag=v1' }, 1],
    [{ path: `${at}/tagHistory`, member: 'records', query: `digest=${digest}` }, 1],
    [{ path: `${at}/toldTagHistory`, member: 'records' }, 6],
    [{ path: `${at}/toldTagHistory`, member: 'records', query: 'tag=two' }, 3],
    [{ path: `${at}/tags`, member: 'tags', query: 'prefix=v' }, 3],
    [{ path: `${at}/unpulled`, member: 'digests' }, 3],
    [{ path: `${image}/referrers`, member: 'referrers' }, 3],
    [{ path: `${image}/packages`, member: 'packages' }, 3],
    [{ path: `${image}/scanReports`, member: 'reports' }, 3],
    [{ path: `${image}/statements`, member: 'statements' }, 6],
    [own('vulnerableImages', 'images', 'vulnerability=CVE-2026-1'), 3],
    [own('imagesWithPackage', 'images', 'name=zlib'), 3],
    [own('search', 'results', 'query=v'), 3],
  ]
}

test('walks all pages of each list in each order', async (t) => {
  for (const [list, least] of listings()) {
    await t.test(`${list.path} ${list.query ?? ''}`, () => checkList(owner, list, least))
  }
})

test('each list below /registry/v2/ has an entry in this test', () => {
  const paths = listings().map(([{ path }]) => path)
  const left = methods.filter(({ template }) => {
    const parts = template.split(/\{[^}]*\}/).map((part) => RegExp.escape(part))
    return !paths.some((path) => new RegExp(`^${parts.join('.+')}$`).test(path))
  })
  assert.deepEqual(left, [])
})

test('Get returns each listed resource, with the time of its last change', async () => {
  for (const [name, member] of [
    ['holds', 'holds'],
    ['quarantined', 'quarantined'],
    ['pullRuleExceptions', 'pullRuleExceptions'],
    ['gateExceptions', 'gateExceptions'],
    ['deletedRepos', 'deletedRepos'],
  ] as const) {
    const query = name === 'deletedRepos' || name === 'quarantined' ? '' : '?include_ended=true'
    const all = ok(await owner.get(`/registry/v2/${name}${query}`))[member] as Json[]
    for (const one of all) assert.deepEqual(ok(await owner.get(`/registry/v2/${name}/${one.uid}`)), one)
    for (const { createTime, updateTime, releaseTime, revokeTime } of all) {
      if (name !== 'deletedRepos') assert.equal(updateTime, releaseTime ?? revokeTime ?? createTime, name)
    }
    assert.equal((await owner.get(`/registry/v2/${name}/${repo}/${'0'.repeat(16)}`)).status, 404, name)
  }
  const at = `/registry/v2/repos/${repo}/digests/${digest}/statements`
  const [said] = ok(await owner.get(at)).statements
  assert.deepEqual(ok(await owner.get(`${at}/${said.uid}`)), said)
  assert.equal((await owner.get(`${at}/0.1`)).status, 404)
})
