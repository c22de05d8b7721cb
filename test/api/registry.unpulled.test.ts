// Manifests that nobody has pulled for some days, and reasons against their deletion.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sweepUsage } from '#domains/registry/usage/digest-usage.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { pushSbom } from '../support/images.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { indexOf, startRegistry } from '../support/registry.ts'

const day = 24 * 3_600_000
const start = Date.parse('2026-03-01T08:00:00.000Z')
const iso = (days: number): string => new Date(start + days * day).toISOString()

/** A repository with images from the first day, on a server whose clock the test advances. */
async function scene() {
  let now = start
  const registry = await startRegistry({ clock: () => new Date(now) })
  const uid = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid as string
  const repo = (await registry.app.paths.find('acme/app')).repo!.id
  const on = async (days: number): Promise<Client> => {
    now = start + days * day
    return registry.as(operatorUid)
  }
  const note = async (digest: string, caller: string, method: 'GET' | 'HEAD', days: number) => {
    registry.app.usage.note(repo, digest, caller, method, iso(days))
    await registry.app.usage.flush()
  }
  const list = async (api: Client, query = ''): Promise<Json[]> =>
    ok(await api.get(`/registry/v2/repos/${uid}/unpulled?${query}`)).digests
  const pusherOn = () => registry.registryAs(registry.pusher.uid)
  return { registry, uid, on, note, list, pusherOn }
}
const digestsOf = (listed: readonly Json[]) => listed.map(({ digest }) => digest).sort()

test('lists manifests without pulls, including those with HEAD requests only, with the time of the last request', async () => {
  const { registry, on, note, list } = await scene()
  await using _ = registry
  const [pulled, asked, never] = await Promise.all(
    ['pulled', 'asked', 'never'].map((tag) => registry.pusher.pushImage('acme/app', tag)),
  )
  await note(pulled!.digest, registry.puller.uid, 'GET', 15)
  await note(asked!.digest, registry.puller.uid, 'GET', 1)
  await note(asked!.digest, '', 'HEAD', 39)
  const api = await on(40)
  const listed = await list(api)
  assert.deepEqual(digestsOf(listed), [asked!.digest, never!.digest].sort())
  const [byHead, byNobody] = [asked, never].map((one) => listed.find(({ digest }) => digest === one!.digest)!)
  const { lastPullTime, lastPuller, lastPullerName, lastCheckTime, tags, safe, createTime } = byHead!
  assert.deepEqual(
    [lastPullTime, lastPuller, lastCheckTime, tags, safe, createTime],
    [iso(1), registry.puller.uid, iso(39), ['asked'], true, iso(0)],
  )
  assert.notEqual(lastPullerName, '')
  assert.deepEqual(
    [byNobody!.lastPullTime, byNobody!.lastPuller, byNobody!.lastCheckTime, byNobody!.safe],
    [undefined, '', undefined, true],
  )
  // A pull at the start of the time range counts, and an image pushed during it is too new to be listed.
  assert.deepEqual(digestsOf(await list(api, 'days=39')), [asked!.digest, never!.digest].sort())
  assert.deepEqual(digestsOf(await list(await on(40), 'days=40')), [never!.digest])
  assert.deepEqual(await list(await on(40), 'days=41'), [])
})

test('pulls of ignored identities are still excluded after a week, when stored callers are merged into one count', async () => {
  const { registry, on, note, list } = await scene()
  await using _ = registry
  const scanned = await registry.pusher.pushImage('acme/app', 'scanned')
  const used = await registry.pusher.pushImage('acme/app', 'used')
  const scanner = (await registry.seed.identity(registry.org.uid)).uid as string
  for (let days = 0; days <= 30; days += 3) {
    await note(scanned.digest, scanner, 'GET', days)
    await note(scanned.digest, `${scanner}/${'1'.repeat(16)}`, 'GET', days)
    await note(used.digest, scanner, 'GET', days)
  }
  await note(used.digest, registry.puller.uid, 'GET', 12)
  await note(used.digest, registry.puller.uid, 'HEAD', 29)
  // A check on a later day. The newest rows then are not those of the scanner.
  await note(scanned.digest, '', 'HEAD', 40)
  await note(used.digest, '', 'HEAD', 40)
  let api = await on(41)
  await runJob(registry.app, sweepUsage)
  api = await on(41)
  assert.deepEqual(await list(api), [])
  const but = await list(api, `except=${scanner}`)
  assert.deepEqual(digestsOf(but), [scanned.digest])
  assert.deepEqual([but[0]!.lastPullTime, but[0]!.lastPuller], [undefined, ''])
  const more = await list(api, `days=20&except=${scanner}&except=${registry.pusher.uid}`)
  assert.deepEqual(digestsOf(more), [scanned.digest, used.digest].sort())
  assert.equal(more.find(({ digest }) => digest === used.digest)!.lastPuller, registry.puller.uid)
})

test('does not mark parts of other manifests and protected manifests as safe to delete', async () => {
  const { registry, uid, on, list, pusherOn } = await scene()
  await using _ = registry
  const pusher = await pusherOn()
  const child = await pusher.pushImage('acme/app')
  const index = await pusher.pushManifest('acme/app', indexOf([child]), 'multi')
  const alone = await pusher.pushImage('acme/app', 'alone')
  const sbom = await pushSbom(pusher, 'acme/app', alone, '{}')
  const signature = await pusher.pushImage('acme/app', `${alone.digest.replace(':', '-')}.sig`)
  const orphan = await pusher.pushImage('acme/app', `sha256-${'0'.repeat(64)}.sig`)
  const held = await pusher.pushImage('acme/app', 'held')
  ok(await registry.operator.post(`/registry/v2/holds/${uid}`, { digest: held.digest, reason: 'evidence' }))
  const listed = await list(await on(40))
  const said = new Map(listed.map(({ digest, safe, partOf, keptBy }) => [digest, [safe, partOf, keptBy]]))
  const none = undefined
  assert.deepEqual(
    [child, index, alone, sbom, signature, orphan, held].map(({ digest }) => said.get(digest)),
    [
      [false, index.digest, none],
      [true, '', none],
      [true, '', none],
      [false, alone.digest, none],
      [false, alone.digest, none],
      [true, '', none],
      [false, '', 'HELD'],
    ],
  )
})

test('pages continue after the last item, and require permission to list manifests', async () => {
  const { registry, uid, on, list } = await scene()
  await using _ = registry
  const made = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((tag) => registry.pusher.pushImage('acme/app', tag)))
  const { seed, org } = registry
  const stranger = (await seed.identity((await seed.group()).uid)).uid as string
  const role = await seed.role(org.uid, ['CAP_MANIFEST_LIST', 'CAP_REPO_LIST'])
  const looker = (await seed.member(org.uid, role.uid)).uid as string
  const viewer = (await seed.member(org.uid, roleUids.viewer)).uid as string
  const api = await on(40)
  const path = `/registry/v2/repos/${uid}/unpulled`
  const all: Json[] = []
  let [token, pages] = ['', 0]
  do {
    const page = ok(await api.get(`${path}?pageSize=2&pageToken=${token}`))
    all.push(...page.digests)
    token = page.nextPageToken
    pages++
  } while (token !== '')
  assert.deepEqual([digestsOf(all), pages], [made.map(({ digest }) => digest).sort(), 3])
  const first = ok(await api.get(`${path}?pageSize=2`))
  assertInvalid(await api.get(`${path}?pageSize=2&days=7&pageToken=${first.nextPageToken}`), 'page_token')
  assertInvalid(await api.get(`${path}?days=91`), 'days')
  assertInvalid(await api.get(`${path}?days=-1`), 'days')
  assertInvalid(await api.get(`${path}?except=scanner`), 'except')
  const uids = Array.from({ length: 21 }, () => `except=${'1'.repeat(40)}`)
  assertInvalid(await api.get(`${path}?${uids.join('&')}`), 'except')
  const gone = `${registry.org.uid}/${'0'.repeat(16)}`
  assertNotFound(await api.get(`/registry/v2/repos/${gone}/unpulled`), 'registry.pinfold.dev/Repo', gone)
  assertDenied(await (await registry.as(stranger)).get(path))
  // Callers who may not list identities see the time of the last pull, but not the identity.
  registry.app.usage.note(
    (await registry.app.paths.find('acme/app')).repo!.id,
    made[0]!.digest,
    registry.puller.uid,
    'GET',
    iso(1),
  )
  await registry.app.usage.flush()
  const [told] = (await list(await registry.as(looker))).filter(({ digest }) => digest === made[0]!.digest)
  assert.deepEqual([told!.lastPullTime, told!.lastPuller, told!.lastPullerName], [iso(1), '', ''])
  assert.equal((await list(await registry.as(viewer))).length, 5)
})
