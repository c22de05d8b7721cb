// Events of vulnerabilities that are found and resolved in images that tags point to.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { emitVulnerabilityEvents } from '#domains/scanning/changes/changes.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { beginSource, putRecords, putSlice } from '#domains/scanning/records/records.service.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { eventsOf, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { imageOf, startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, pythonPackage, readSource, recordAbout } from '../support/scanning.ts'

let now = Date.parse('2026-03-01T08:00:00Z')
let registry: TestRegistry
let [app, worker] = ['', '']
let owner: Client
before(async () => {
  // Each clock reading returns a slightly later time.
  registry = await startRegistry({ clock: () => new Date(now++) })
  const { seed, org } = registry
  app = (await seed.repo(org.uid, { name: 'app' })).uid
  worker = (await seed.repo(org.uid, { name: 'worker' })).uid
  owner = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
})
after(() => registry[Symbol.asyncDispose]())

const eco = 'Alpine:v3.19'
const sync = (...records: Parameters<typeof readSource>[2][number][]) => readSource(registry.app, eco, records)
const push = (repo: string, lines: string[], tag?: string) =>
  pushAndScan(registry, repo, apkLayer('alpine', '3.19.1', lines), tag)
const tell = () => runJob(registry.app, emitVulnerabilityEvents)
const told = async (work: () => Promise<unknown>): Promise<Json[]> => {
  const events = await eventsOf(registry, async () => {
    await work()
    await tell()
  })
  return events.filter(({ type }) => type.includes('.vulnerability.'))
}
const short = (events: Json[]): string[] =>
  events.map(({ type, body }) => {
    const tags = (body.tags ?? []).map(({ tag }: Json) => tag).join()
    return `${type.split('.').at(-2)} ${body.repository} ${body.vulnerability} ${tags}`
  })

const ssl = ['libssl3 3.1.4-r2 openssl', 'libcrypto3 3.1.4-r2 openssl', 'musl 1-r0']
let image = ''
test('sends no event for findings that are known when an image is pushed', async () => {
  await sync(recordAbout('CVE-2026-1', eco, 'musl', '9'))
  const events = await told(async () => {
    image = await push('acme/app', ssl, '1.0')
    await push('acme/app', ssl, 'latest')
    await push('acme/worker', [...ssl, 'zlib 1-r0'], 'latest')
  })
  assert.deepEqual(events, [])
})

test('a record after the push sends one event for each repository, with its tags, and reads no blob', async () => {
  const { read } = registry.app.blobs
  let reads = 0
  registry.app.blobs.read = (location) => {
    reads++
    return read.call(registry.app.blobs, location)
  }
  const events = await told(() =>
    sync(recordAbout('ALPINE-CVE-2026-2', eco, 'openssl', '9', { upstream: ['CVE-2026-2'] })),
  )
  registry.app.blobs.read = read
  assert.equal(reads, 0)
  assert.deepEqual(short(events), ['found acme/app CVE-2026-2 1.0,latest', 'found acme/worker CVE-2026-2 latest'])
  const [{ type, subject, group, body }] = events as [Json]
  assert.equal(type, 'dev.pinfold.control.registry.vulnerability.found.v1')
  assert.deepEqual([subject, group], [app, registry.org.uid])
  assert.deepEqual(body, {
    repository: 'acme/app',
    repo_id: app,
    vulnerability: 'CVE-2026-2',
    severity: 'high',
    tags: [
      { tag: '1.0', digest: image },
      { tag: 'latest', digest: image },
    ],
    more_tags: false,
    purls: ['pkg:apk/alpine/libcrypto3@3.1.4-r2?arch=x86_64', 'pkg:apk/alpine/libssl3@3.1.4-r2?arch=x86_64'],
  })
  assert.deepEqual(await told(async () => undefined), [])
})

test('sends no event for a change of wording, or for the same finding from another source', async () => {
  const events = await told(async () => {
    await sync(recordAbout('ALPINE-CVE-2026-2', eco, 'openssl', '10', { upstream: ['CVE-2026-2'], summary: 'else' }))
    await sync(recordAbout('OTHER-2', eco, 'openssl', '9', { upstream: ['CVE-2026-2'] }))
  })
  assert.deepEqual(events, [])
})

test('a finding is resolved when its last record is withdrawn', async () => {
  const gone = { upstream: ['CVE-2026-2'], withdrawTime: '2026-03-01T00:00:00.000Z' }
  assert.deepEqual(await told(() => sync(recordAbout('OTHER-2', eco, 'openssl', '9', gone))), [])
  const events = await told(() =>
    sync(recordAbout('ALPINE-CVE-2026-2', eco, 'openssl', '1', { upstream: ['CVE-2026-2'] })),
  )
  assert.deepEqual(short(events), ['resolved acme/app CVE-2026-2 1.0,latest', 'resolved acme/worker CVE-2026-2 latest'])
  assert.deepEqual(events[0]!.body.repo_id, app)
})

test('sends no event for a finding that disappears before it was reported', async () => {
  const events = await told(async () => {
    await sync(recordAbout('CVE-2026-3', eco, 'zlib', '9'))
    await sync(recordAbout('CVE-2026-3', eco, 'zlib', '1-r0'))
  })
  assert.deepEqual(events, [])
})

test('sends no event for images without a tag, and for accepted risks', async () => {
  await push('acme/app', ['odd 1-r0'])
  assert.deepEqual(await told(() => sync(recordAbout('CVE-2026-4', eco, 'odd', '9'))), [])
  const expireTime = new Date(now + 86_400_000).toISOString()
  const risk = { vulnerability: 'CVE-2026-5', reason: 'known', expireTime }
  ok(await owner.post(`/registry/v2/riskAcceptances/${worker}`, risk))
  const events = await told(() => sync(recordAbout('CVE-2026-5', eco, 'openssl', '9')))
  assert.deepEqual(short(events), ['found acme/app CVE-2026-5 1.0,latest'])
})

test('sends no event for findings in a newer image that were known before the image', async () => {
  await sync(recordAbout('CVE-2026-6', eco, 'libssl3', '9'))
  await push('acme/worker', ['libssl3 3.1.4-r2 openssl', 'new 1-r0'], 'new')
  const events = await told(async () => undefined)
  assert.deepEqual(short(events), ['found acme/app CVE-2026-6 1.0,latest', 'found acme/worker CVE-2026-6 latest'])
})

test('the first read of a source sends no events, and later reads do', async () => {
  await pushAndScan(registry, 'acme/app', pythonPackage('flask', '2.0.0'), 'flask')
  const about = (id: string) => recordAbout(id, 'PyPI', 'flask', '9')
  assert.deepEqual(await told(() => readSource(registry.app, 'PyPI', [about('CVE-2026-21')])), [])
  const events = await told(() => readSource(registry.app, 'PyPI', [about('CVE-2026-21'), about('CVE-2026-22')]))
  assert.deepEqual(short(events), ['found acme/app CVE-2026-22 flask'])
  const imported = await told(async () => {
    const work = { app: registry.app, log: registry.app.log }
    const run = await beginSource(work, { name: 'import/osv', url: '', licence: 'unknown', ecosystems: [] })
    await putRecords(work, run, [about('CVE-2026-23')])
    await runJob(registry.app, matchPackages)
  })
  assert.deepEqual(short(imported), ['found acme/app CVE-2026-23 flask'])
})

test('an advisory of one organization sends events only for its own repositories, although others have the same packages', async () => {
  const {
    seed,
    app: { db },
  } = registry
  const other = await seed.group('', { name: 'beside' })
  await seed.member(other.uid, roleUids.owner)
  const operator = await registry.registryAs(operatorUid)
  const image = await push('acme/app', ['shared 1-r0'], 'shared')
  const { config, layers } = (await operator.ok(200, 'GET', `acme/app/manifests/${image}`)).body
  for (const { digest } of [config, ...layers]) {
    await operator.ok(201, 'POST', `beside/app/blobs/uploads/?mount=${digest}&from=acme/app`)
  }
  await operator.pushManifest('beside/app', imageOf(config, layers), 'shared')
  await runJob(registry.app, readImages)
  const saidBy = async (organization: string, id: string, more: Json = {}) =>
    short(
      await told(async () => {
        const run = await beginSource(
          { app: registry.app },
          { name: 'import/own', url: '', licence: 'unknown', ecosystems: [] },
        )
        const said = {
          record: recordAbout(id, eco, 'shared', '9', more),
          organization,
          hash: JSON.stringify([id, more]),
        }
        await db.tx((tx) => putSlice(tx, { ...run, now: registry.app.clock().toISOString() }, [said]))
        await runJob(registry.app, matchPackages)
      }),
    )
  assert.deepEqual(await saidBy(registry.org.uid, 'CVE-2026-61'), ['found acme/app CVE-2026-61 shared'])
  assert.deepEqual(await saidBy(other.uid, 'CVE-2026-62'), ['found beside/app CVE-2026-62 shared'])
  assert.deepEqual((await saidBy('', 'CVE-2026-63')).sort(), [
    'found acme/app CVE-2026-63 shared',
    'found beside/app CVE-2026-63 shared',
  ])
  const withdrawn = { withdrawTime: '2026-03-01T00:00:00.000Z' }
  assert.deepEqual(await saidBy(other.uid, 'CVE-2026-62', withdrawn), ['resolved beside/app CVE-2026-62 shared'])
})

test('an interrupted run continues after the last reported repository', async () => {
  await sync(recordAbout('CVE-2026-7', eco, 'musl', '9'))
  const { db } = registry.app
  const events = await told(async () => {
    // The state that a server leaves if it stops after the first repository.
    const { noteChanges } = await import('#domains/scanning/changes/changes.service.ts')
    const lease = { holds: () => true, check() {}, tx: db.tx.bind(db) } as unknown as Parameters<typeof noteChanges>[1]
    await noteChanges(registry.app, lease)
    await db.tx(async (tx) => {
      await tx.run(sql`
        UPDATE vulnerability_changes SET begun = 1, last_repo = (SELECT id FROM repos WHERE uid = ${app})`)
    })
  })
  assert.deepEqual(short(events), ['found acme/worker CVE-2026-7 latest'])
})

test('sends events for all packages of several images that change one after the other', async () => {
  const aliased = (id: string, name: string) => recordAbout(id, eco, name, '9', { upstream: ['CVE-2026-40'] })
  await push('acme/app', ['one 1-r0'], 'one')
  const events = await told(async () => {
    await sync(aliased('X-1', 'one'))
    await push('acme/worker', ['two 1-r0'], 'two')
    await sync(aliased('X-2', 'two'))
  })
  assert.deepEqual(short(events), ['found acme/app CVE-2026-40 one', 'found acme/worker CVE-2026-40 two'])
})

test('does not report a finding as resolved if it can still exist or is only partly stored', async () => {
  const taken = { withdrawTime: '2026-03-01T00:00:00.000Z' }
  await push('acme/app', ['three 1-r0', 'four strange'], 'three')
  await push('acme/worker', ['three 1-r0', 'five 1-r0'], 'three')
  await sync(recordAbout('CVE-2026-41', eco, 'three', '9'))
  await sync(recordAbout('X-4', eco, 'four', '9', { upstream: ['CVE-2026-41'] }))
  await tell()
  const { db } = registry.app
  const events = await told(() => sync(recordAbout('CVE-2026-41', eco, 'three', '9', taken)))
  assert.deepEqual(short(events), ['resolved acme/worker CVE-2026-41 three'])
  await sync(recordAbout('CVE-2026-42', eco, 'five', '9'))
  await tell()
  const over = (isOver: number) =>
    db.tx((tx) =>
      tx.run(sql`
        UPDATE component_lists SET over_limit = ${isOver} WHERE id IN (
          SELECT l.list_id FROM list_components l JOIN components c ON c.id = l.component_id WHERE c.name = 'five')`),
    )
  const none = await told(async () => {
    await sync(recordAbout('CVE-2026-42', eco, 'five', '9', taken))
    await over(1)
  })
  assert.deepEqual(short(none), [])
  // The event is sent once, after all findings of the image are stored again.
  assert.deepEqual(await told(async () => undefined), [])
  assert.deepEqual(short(await told(() => over(0))), ['resolved acme/worker CVE-2026-42 three'])
  assert.deepEqual(await told(async () => undefined), [])
})

test('does not report a finding as resolved if it returns before all findings are stored again', async () => {
  const taken = { withdrawTime: '2026-03-01T00:00:00.000Z' }
  await push('acme/worker', ['back 1-r0'], 'back')
  await sync(recordAbout('CVE-2026-44', eco, 'back', '9'))
  await tell()
  const none = await told(async () => {
    await sync(recordAbout('CVE-2026-44', eco, 'back', '9', taken))
    await registry.app.db.tx((tx) =>
      tx.run(sql`
        UPDATE component_lists SET over_limit = 1 WHERE id IN (
          SELECT l.list_id FROM list_components l JOIN components c ON c.id = l.component_id WHERE c.name = 'back')`),
    )
  })
  assert.deepEqual(none, [])
  // The next count shows that all findings are stored.
  const again = await told(() => sync(recordAbout('CVE-2026-44', eco, 'back', '9')))
  assert.deepEqual(short(again), ['found acme/worker CVE-2026-44 back'])
  assert.deepEqual(await told(async () => undefined), [])
})

test('packages whose comparison never ended do not block events of others', async () => {
  await push('acme/app', ['held 1-r0', 'six 1-r0'], 'six')
  const { db } = registry.app
  const stuck = Array.from({ length: 250 }, (_, i) => recordAbout(`CVE-2020-${i}`, eco, 'held', '9'))
  const events = await told(async () => {
    await sync(...stuck)
    await db.tx((tx) => tx.run(sql`UPDATE components SET match_time = '', held = 1 WHERE name = 'held'`))
    await sync(recordAbout('CVE-2026-43', eco, 'six', '9'))
  })
  assert.deepEqual(short(events), ['found acme/app CVE-2026-43 six'])
})
