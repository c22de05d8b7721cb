// Compares the counted usage of organizations, while it changes, with a recount.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { raw, sql } from '#db/sql.ts'
import { countOfSink } from '#domains/events/subscriptions/subscriptions.store.ts'
import { findResourceLimits } from '#domains/iam/groups/groups.store.ts'
import { usageOf } from '#domains/registry/blobs/usage.store.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { migration } from '../../src/db/migrations/0016-quotas.ts'
import { words } from '../../src/db/words.ts'
import { checkUsage } from '../support/check-usage.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'
import { oneOf, type Random, randomFrom } from '../support/random.ts'
import { type Descriptor, digestOf, imageOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'

const operations = 300
const inFlight = 12
const contents = Array.from({ length: 8 }, (_, i) => `content ${i} `.repeat(i * 7 + 1))

/** Pushes, mounts and deletes at random in a few repos of two organizations, so that many of the requests overlap. */
async function storm({ registryOperator, operator }: TestRegistry, random: Random) {
  const pick = <T>(from: readonly T[]): T => oneOf(random, from)
  const names = ['acme/a', 'acme/b', 'acme/team/c', 'other/a', 'other/b']
  const open: string[] = []
  const answers: Record<string, number> = {}
  const tell = (what: string, { status }: { status: number }): void => {
    assert.ok(status < 500, `${what} answered ${status}`)
    answers[`${what} ${status}`] = (answers[`${what} ${status}`] ?? 0) + 1
  }
  const { call } = registryOperator
  const manifestOf = (layer: string) => {
    const descriptor = (content: string): Descriptor => {
      return { mediaType: types.layer, digest: digestOf(content), size: content.length }
    }
    return JSON.stringify(imageOf(descriptor(contents[0]!), [descriptor(layer)]))
  }
  const doings: Record<string, () => Promise<void>> = {
    async post() {
      const body = pick(contents)
      tell('post', await call('POST', `${pick(names)}/blobs/uploads/?digest=${digestOf(body)}`, { body }))
    },
    async begin() {
      const begun = await call('POST', `${pick(names)}/blobs/uploads/`)
      if (begun.status === 202) open.push(String(begun.headers.location))
      tell('begin', begun)
    },
    async patch() {
      if (open.length > 0) tell('patch', await call('PATCH', pick(open), { body: pick(contents) }))
    },
    async put() {
      const body = pick(contents)
      if (open.length > 0) tell('put', await call('PUT', `${pick(open)}?digest=${digestOf(body)}`, { body }))
    },
    async cancel() {
      if (open.length > 0) tell('cancel', await call('DELETE', pick(open)))
    },
    async mount() {
      const query = `mount=${digestOf(pick(contents))}&from=${pick(names)}`
      tell('mount', await call('POST', `${pick(names)}/blobs/uploads/?${query}`))
    },
    async manifest() {
      const sent = { body: manifestOf(pick(contents)), headers: { 'content-type': types.image } }
      tell('manifest', await call('PUT', `${pick(names)}/manifests/t${random.below(3)}`, sent))
    },
    async drop() {
      tell('drop', await call('DELETE', `${pick(names)}/manifests/${digestOf(manifestOf(pick(contents)))}`))
    },
    async unlink() {
      tell('unlink', await call('DELETE', `${pick(names)}/blobs/${digestOf(pick(contents))}`))
    },
    async repo() {
      if (random.below(3) > 0) return
      const { repos } = (await operator.get('/registry/v2/repos')).body as { repos?: { uid: string }[] }
      if (repos?.length) tell('repo', await operator.delete(`/registry/v2/repos/${pick(repos).uid}`))
    },
  }
  // Some actions are more likely than others. Otherwise there would be little left to delete.
  const dice = [...Object.keys(doings), 'post', 'post', 'begin', 'patch', 'put', 'manifest', 'manifest']
  let left = operations
  const lane = async () => {
    while (left-- > 0) await doings[pick(dice)]!()
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  return answers
}

test('usage counts equal the content after any mix of pushes, mounts, deletions and garbage collection', async () => {
  const clock = { now: Date.parse('2026-03-01T00:00:00Z') }
  await using registry = await startRegistry({ clock: () => new Date(clock.now) })
  await registry.seed.group('', { name: 'other' })
  const seed = randomInt(2 ** 31)
  const answers = await storm(registry, randomFrom(seed))
  const done = Object.entries(answers).filter(([what]) => / 20\d$/.test(what))
  const changes = done.reduce((sum, [, count]) => sum + count, 0)
  assert.ok(changes > operations / 5, `seed ${seed}: ${JSON.stringify(answers)}`)
  const used = await checkUsage(registry)
  assert.ok(used.size > 0, `seed ${seed}`)

  // At least one request of each kind, in addition to the random ones.
  const { registryOperator: client } = registry
  await client.pushImage('acme/last', 'v1')
  const location = String((await client.ok(202, 'POST', 'acme/last/blobs/uploads/')).headers.location)
  await client.ok(202, 'PATCH', location, { body: 'left open' })
  const { repo } = await registry.app.paths.find('acme/last')
  const other = await client.pushImage('acme/other', 'v1')
  const loose = await client.pushBlob('acme/other', 'loose')
  for (const what of [`manifests/${other.digest}`, `blobs/${loose.digest}`])
    await client.ok(202, 'DELETE', `acme/other/${what}`)
  await checkUsage(registry)
  assert.equal((await registry.operator.delete(`/registry/v2/repos/${repo!.uid}`)).status, 200)
  await client.ok(202, 'POST', 'acme/other/blobs/uploads/')
  await checkUsage(registry)

  clock.now += 2 * 86_400_000
  const operator = await registry.as(operatorUid)
  const { body } = await operator.post('/control/v1/blobs:collect', {})
  assert.ok(Number(body.links) > 0 && Number(body.uploads) > 0, JSON.stringify(body))
  await checkUsage(registry)
})

test('the test detects wrong usage counts', async () => {
  await using registry = await startRegistry()
  await registry.pusher.pushImage('acme/app', 'v1')
  await checkUsage(registry)
  for (const column of ['bytes', 'uploads', 'upload_bytes']) {
    const drift = (by: number) =>
      registry.app.db.tx((tx) => tx.run(raw(`UPDATE organization_usage SET ${column} = ${column} + ${by}`)))
    await drift(1)
    await assert.rejects(checkUsage(registry), assert.AssertionError, column)
    await drift(-1)
  }
  await registry.app.db.tx((tx) => tx.run(sql`UPDATE organization_blobs SET links = links + 1`))
  await assert.rejects(checkUsage(registry), assert.AssertionError)
})

test('a migration counts the usage of an old database', async () => {
  await using registry = await startRegistry()
  const { pusher, registryOperator, app } = registry
  await registry.seed.group('', { name: 'other' })
  const layer = await pusher.pushBlob('acme/one', 'a layer')
  for (const name of ['acme/two', 'other/one']) await registryOperator.pushBlob(name, 'a layer')
  await pusher.pushManifest('acme/one', imageOf(await pusher.pushBlob('acme/one', '{}', types.config), [layer]), 'v1')
  const location = String((await pusher.ok(202, 'POST', 'acme/one/blobs/uploads/')).headers.location)
  for (const body of ['one', 'two']) await pusher.ok(202, 'PATCH', location, { body })
  const before = await checkUsage(registry)
  await app.db.tx(async (tx) => {
    for (const undo of [
      'DROP TABLE organization_blobs',
      'DROP TABLE organization_usage',
      'ALTER TABLE uploads DROP COLUMN parts',
      'DROP INDEX subscriptions_by_sink',
    ])
      await tx.run(raw(undo))
    assert.ok('up' in migration)
    for (const text of migration.up(words[app.db.engine])) await tx.run(raw(text))
  })
  assert.deepEqual(await checkUsage(registry), before)
  await pusher.ok(201, 'PUT', `${location}?digest=${digestOf('onetwo')}`)
  await checkUsage(registry)
})

test('queries during a push or a subscription use indexes', async () => {
  await using registry = await startRegistry()
  const org = 'a'.repeat(40)
  const asked = [
    ...(await queriesOf((reader) => countOfSink(reader, org, 'https://example.com/'))),
    ...(await queriesOf((reader) => usageOf(reader, org).catch(() => {}))),
    ...(await queriesOf((reader) => findResourceLimits(reader, org))),
  ]
  const wanted = [/subscriptions_by_sink/, /organization_usage/, /groups/]
  assert.equal(asked.length, wanted.length)
  for (const [i, query] of asked.entries()) await checkPlanOf(registry, query, `query ${i}`, [wanted[i]!])
})
