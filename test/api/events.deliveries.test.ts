import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { localSinks, type Received, startReceiver, verifyDelivery } from '../support/receiver.ts'
import { startRegistry } from '../support/registry.ts'

async function subscribe(pinfold: Pinfold, group: string, sink: string): Promise<string> {
  return (await pinfold.seed.subscription(group, sink)).uid
}

const types = (got: readonly Received[]) => got.map(({ type }) => type.replace('dev.pinfold.api.', ''))

test('events of a repository and a role binding arrive as signed CloudEvents in binary mode', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver()
  const org = await pinfold.seed.group()
  await subscribe(pinfold, org.uid, receiver.url)
  const repo = await pinfold.seed.repo(org.uid, { description: 'späte Grüße' })
  const identity = await pinfold.seed.identity(org.uid)
  const binding = await pinfold.seed.binding(org.uid, identity.uid, roleUids.viewer)
  await receiver.until((got) => got.length >= 3)

  assert.deepEqual(types(receiver.got).sort(), [
    'iam.identity.created.v1',
    'iam.rolebindings.created.v1',
    'platform.registry.repo.created.v1',
  ])
  for (const one of receiver.got) await verifyDelivery(one, pinfold.url, org.uid)
  const created = receiver.got.find(({ subject }) => subject === repo.uid)!
  const { headers, json } = created
  assert.match(created.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const ce = Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('ce-')))
  assert.deepEqual(ce, {
    'ce-specversion': '1.0',
    'ce-id': created.id,
    'ce-type': 'dev.pinfold.api.platform.registry.repo.created.v1',
    'ce-source': `${pinfold.url}/registry/v2/repos`,
    'ce-subject': repo.uid,
    'ce-time': repo.createTime,
    'ce-audience': 'customer',
    'ce-group': org.uid,
    'ce-bodytype': 'pinfold.platform.registry.v2.Repo',
  })
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(headers['user-agent'], 'pinfold')
  assert.deepEqual(Object.keys(json), ['actor', 'body'])
  assert.equal(json.body.description, 'späte Grüße')
  assert.equal(json.body.create_time, repo.createTime)
  const bound = receiver.got.find(({ subject }) => subject === binding.uid)!
  assert.equal(bound.json.body.role.uid, roleUids.viewer)
})

test('a subscription gets events of its group and the groups below while the subscription exists', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using all = await startReceiver()
  await using folder = await startReceiver()
  await using other = await startReceiver()
  const { seed, operator } = pinfold
  const org = await seed.group()
  const team = await seed.group(org.uid)
  const sibling = await seed.group(org.uid)
  await seed.repo(team.uid)
  const first = await subscribe(pinfold, org.uid, all.url)
  const second = await subscribe(pinfold, team.uid, folder.url)
  await subscribe(pinfold, sibling.uid, other.url)
  const repo = await seed.repo(team.uid)
  await all.until((got) => got.length >= 3)
  await folder.until((got) => got.length >= 1)
  // Events of different subjects may overtake each other.
  assert.deepEqual(types(all.got).sort(), [
    'events.subscription.created.v1',
    'events.subscription.created.v1',
    'platform.registry.repo.created.v1',
  ])
  assert.deepEqual(types(folder.got), ['platform.registry.repo.created.v1'])
  for (const one of folder.got) await verifyDelivery(one, pinfold.url, team.uid)
  assert.ok(all.got.every(({ subject }) => subject !== first))

  assert.equal((await operator.delete(`/events/v2/subscriptions/${second}`)).status, 200)
  await operator.patch(`/registry/v2/repos/${repo.uid}`, { description: 'x' })
  await operator.patch(`/iam/v2/groups/${sibling.uid}`, { description: 'x' })
  await all.until((got) => got.length >= 6)
  await other.until((got) => got.length >= 1)
  assert.equal(folder.got.length, 1)
  assert.deepEqual(types(other.got), ['iam.group.updated.v1'])
  const deleted = all.got.find(({ subject, type }) => subject === second && type.endsWith('deleted.v1'))!
  assert.deepEqual(deleted.json.body, { uid: second })
})

test('keeps the order of each subject while a receiver fails at random, and delays no other subject', async () => {
  await using pinfold = await startPinfold(localSinks)
  let dice = 7
  await using receiver = await startReceiver(() => {
    dice = (dice * 1103515245 + 12345) % 2 ** 31
    return dice % 10 < 3 ? { status: 500 } : undefined
  })
  const { seed, operator } = pinfold
  const org = await seed.group()
  const repos = await Promise.all(Array.from({ length: 8 }, () => seed.repo(org.uid)))
  await subscribe(pinfold, org.uid, receiver.url)
  await Promise.all(
    repos.map(async ({ uid }) => {
      for (let i = 0; i < 25; i++) await operator.patch(`/registry/v2/repos/${uid}`, { description: `${i}` })
    }),
  )
  await receiver.until(() => receiver.accepted().length === 200)
  for (const { uid } of repos) {
    const order = receiver
      .accepted()
      .filter(({ subject }) => subject === uid)
      .map(({ json }) => Number(json.body.description))
    assert.deepEqual(
      order,
      Array.from({ length: 25 }, (_, i) => i),
    )
  }
})

test('a failing subject does not block other subjects', async () => {
  await using pinfold = await startPinfold(localSinks)
  const { seed, operator } = pinfold
  const org = await seed.group()
  const [bad, good] = [await seed.repo(org.uid), await seed.repo(org.uid)]
  await using receiver = await startReceiver(({ subject }) => (subject === bad.uid ? { status: 422 } : undefined))
  await subscribe(pinfold, org.uid, receiver.url)
  const describe = (uid: string, text: string) => operator.patch(`/registry/v2/repos/${uid}`, { description: text })
  await describe(bad.uid, 'first')
  await describe(bad.uid, 'second')
  for (let i = 0; i < 10; i++) await describe(good.uid, `${i}`)
  await receiver.until((got) => got.filter(({ subject }) => subject === good.uid).length === 10)
  const tried = receiver.got.filter(({ subject }) => subject === bad.uid)
  assert.ok(tried.every(({ json }) => json.body.description === 'first'))
  receiver.answer(() => undefined)
  await receiver.until(() => receiver.accepted().length === 12)
  assert.deepEqual(
    receiver
      .accepted()
      .filter(({ subject }) => subject === bad.uid)
      .map(({ json }) => json.body.description),
    ['first', 'second'],
  )
})

test('an unreachable sink delays no other sink, and gets all its events when it is reachable again', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using away = await startReceiver()
  await using here = await startReceiver()
  const { seed } = pinfold
  const org = await seed.group()
  await subscribe(pinfold, org.uid, away.url)
  await subscribe(pinfold, org.uid, here.url)
  await away.until((got) => got.length === 1)
  await away.shut()
  const repos = await Promise.all(Array.from({ length: 60 }, () => seed.repo(org.uid)))
  await here.until(() => here.accepted().length === 60)
  await away.open()
  await away.until(() => away.accepted().length === 61)
  const wanted = repos.map(({ uid }) => uid).sort()
  const arrived = away.accepted().slice(1)
  assert.deepEqual(arrived.map(({ subject }) => subject).sort(), wanted)
  assert.deepEqual(
    here
      .accepted()
      .map(({ subject }) => subject)
      .sort(),
    wanted,
  )
})

test('a push event has the pushed content in its headers, and the removal of a group mapping has its provider', async () => {
  await using issuer = await startIssuer()
  await using registry = await startRegistry({ ...localSinks, allowInsecureIssuers: true })
  await using receiver = await startReceiver()
  const { org, pusher, seed } = registry
  await seed.subscription(org.uid, receiver.url)
  const { digest } = await pusher.pushImage('acme/app', 'v1')
  await receiver.until((got) => got.some(({ json }) => json.body.tag === 'v1'))
  const push = receiver.got.find(({ json }) => json.body.tag === 'v1')!
  await verifyDelivery(push, registry.url, org.uid)
  const { host } = new URL(registry.url)
  assert.equal(push.type, 'dev.pinfold.registry.push.v1')
  assert.equal(push.headers['ce-source'], `//${host}`)
  assert.equal(push.headers['ce-image'], `${host}/acme/app:v1`)
  assert.equal(push.headers['ce-digest'], digest)
  assert.match(String(push.headers['ce-mediatype']), /^application\/vnd\..*json$/)
  assert.equal(push.json.body.digest, digest)
  assert.equal(push.json.actor.subject, pusher.uid)

  const provider = await seed.provider(org.uid, issuer.url)
  const mapping = await seed.mapping(provider.uid, roleUids.viewer)
  await receiver.until((got) => got.some(({ subject }) => subject === mapping.uid))
  const mapped = receiver.got.find(({ subject }) => subject === mapping.uid)!
  assert.equal(mapped.headers['ce-identityprovider'], provider.uid)
})

test('events that are routed at the creation of a subscription wake the deliveries and the streams', async () => {
  await using pinfold = await startPinfold({ ...localSinks, jobs: [] })
  const { app, seed } = pinfold
  const org = await seed.group()
  const told: string[] = []
  const looks: Promise<unknown>[] = []
  for (const name of ['queued', 'routed'] as const) {
    app.events[name].subscribe(() => {
      told.push(name)
      // The events can be read at once, so the transaction is committed.
      looks.push(app.db.get(sql`SELECT 1 AS found FROM events_outbox WHERE position > 0`))
    })
  }
  await seed.subscription(org.uid, 'http://127.0.0.1:9/hook')
  assert.deepEqual(new Set(told), new Set(['queued', 'routed']))
  assert.ok((await Promise.all(looks)).every((found) => found !== undefined))
})
