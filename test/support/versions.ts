// Random calls through both versions of the API, alternately. After them, both versions must show the same data. A test runs this
// with its own seed, and `test/fuzz/versions.ts` for a long time.
import assert from 'node:assert/strict'
import { sql } from '#db/sql.ts'
import type { Answer, Json, Pinfold } from './pinfold.ts'
import { oneOf, type Random, randomFrom } from './random.ts'
import { plantManifest } from './tags.ts'

/** Kind of resource, with its names in both versions. */
type Kind = {
  name: string
  v1: { path: string; create(body: Json): Json; update?: 'PUT' }
  v2: { path: string; member: string }
  /** Parents in which a resource can be created. */
  parents(world: World): string[]
  /** Members that a client can set, by their names in version 2. */
  body(world: World, random: Random): Json
  /** Converts a body of version 2 to version 1, and a resource of version 2 to its form in version 1. */
  toV1(body: Json): Json
  seen(resource: Json): Json
  /** True if resources of this kind can be updated. */
  changes: boolean
}

type World = { pinfold: Pinfold; organization: string; digest: string; there: Map<string, Set<string>>; made: number }

const textOf = (random: Random, word: string) => `${word} ${random.below(1000)}`
const uidsOf = (world: World, kind: string) => [...(world.there.get(kind) ?? [])].sort()
const groupsOf = (world: World) => [world.organization, ...uidsOf(world, 'groups')]
const same = (body: Json) => body
const byName = ({ uid, id, name, description }: Json) => ({ id: uid ?? id, name, description })

const kinds: readonly Kind[] = [
  {
    name: 'groups',
    v1: { path: '/iam/v1/groups', create: same, update: 'PUT' },
    v2: { path: '/iam/v2/groups', member: 'groups' },
    parents: (world) => [world.organization],
    body: (world, random) => ({ name: `g${world.made++}`, description: textOf(random, 'group') }),
    toV1: same,
    seen: byName,
    changes: true,
  },
  {
    name: 'roles',
    v1: { path: '/iam/v1/roles', create: same, update: 'PUT' },
    v2: { path: '/iam/v2/roles', member: 'roles' },
    parents: groupsOf,
    body: (world, random) => ({
      name: `r${world.made++}`,
      description: textOf(random, 'role'),
      capabilities: ['CAP_REPO_LIST'],
    }),
    toV1: (body) => ({ ...body, capabilities: ['repo.list'] }),
    seen: byName,
    changes: true,
  },
  {
    name: 'identities',
    v1: { path: '/iam/v1/identities', create: same, update: 'PUT' },
    v2: { path: '/iam/v2/identities', member: 'identities' },
    parents: groupsOf,
    body: (world, random) => ({
      name: `i${world.made++}`,
      description: textOf(random, 'identity'),
      claimMatch: { issuer: 'https://issuer.example.com', subject: `s${random.below(1e9)}` },
    }),
    toV1: same,
    seen: ({ claimMatch, ...one }) => ({ ...byName(one), subject: claimMatch?.subject }),
    changes: true,
  },
  {
    name: 'bindings',
    v1: { path: '/iam/v1/rolebindings', create: same },
    v2: { path: '/iam/v2/roleBindings', member: 'roleBindings' },
    parents: groupsOf,
    body: (world, random) => ({
      identityUid: oneOf(random, uidsOf(world, 'identities')),
      roleUid: oneOf(random, uidsOf(world, 'roles')),
    }),
    toV1: ({ identityUid, roleUid }) => ({ identity: identityUid, role: roleUid }),
    seen: ({ uid, id, identityUid, identity, roleUid, role }) => ({
      id: uid ?? id,
      identity: identityUid ?? identity,
      role: roleUid ?? role?.id ?? role,
    }),
    changes: false,
  },
  {
    name: 'repos',
    v1: { path: '/registry/v1/repos', create: same, update: 'PUT' },
    v2: { path: '/registry/v2/repos', member: 'repos' },
    parents: groupsOf,
    body: (world, random) => ({ name: `p${world.made++}`, description: textOf(random, 'repo') }),
    toV1: same,
    seen: byName,
    changes: true,
  },
  {
    name: 'tags',
    v1: { path: '/registry/v1/tags', create: same },
    v2: { path: '/registry/v2/tags', member: 'tags' },
    parents: (world) => uidsOf(world, 'repos'),
    body: (world, random) => ({
      name: `t${random.below(5)}`,
      digest: world.digest,
      deprecated: random.below(2) === 1,
    }),
    toV1: same,
    seen: ({ uid, id, name, digest, deprecated }) => ({ id: uid ?? id, name, digest, deprecated }),
    changes: false,
  },
  {
    name: 'subscriptions',
    v1: { path: '/events/v1/subscriptions', create: same },
    v2: { path: '/events/v2/subscriptions', member: 'subscriptions' },
    parents: groupsOf,
    body: (_, random) => ({ sink: `https://hooks.example.com/${random.below(1000)}` }),
    toV1: same,
    seen: ({ uid, id, sink }) => ({ id: uid ?? id, sink }),
    changes: false,
  },
]

/** Makes the calls, and compares both versions after each `lookEvery` calls. Returns the number of calls that changed data. */
export async function compareVersions(
  pinfold: Pinfold,
  { seed, calls, lookEvery }: { seed: number; calls: number; lookEvery: number },
): Promise<number> {
  const random = randomFrom(seed)
  const organization = (await pinfold.seed.group()).uid
  const world: World = { pinfold, organization, digest: '', there: new Map(), made: 0 }
  let changed = 0
  for (let i = 0; i < calls; i++) {
    if (await oneCall(world, random, i % 2 === 0 ? 'v1' : 'v2')) changed++
    if (i % lookEvery === lookEvery - 1) await compareAll(world, `seed ${seed}, after ${i + 1} calls`)
  }
  await compareAll(world, `seed ${seed}, at the end`)
  return changed
}

async function oneCall(world: World, random: Random, version: 'v1' | 'v2'): Promise<boolean> {
  const kind = oneOf(random, kinds)
  const there = uidsOf(world, kind.name)
  const what = there.length > 60 ? 'delete' : oneOf(random, ['create', 'create', 'update', 'delete'] as const)
  if (what === 'create') return create(world, random, kind, version)
  if (there.length === 0) return false
  const uid = oneOf(random, there)
  return what === 'update' ? update(world, random, kind, version, uid) : remove(world, kind, version, uid)
}

async function create(world: World, random: Random, kind: Kind, version: 'v1' | 'v2'): Promise<boolean> {
  const parents = kind.parents(world)
  const needs = kind.name === 'bindings' ? ['identities', 'roles'] : []
  if (parents.length === 0 || needs.some((one) => uidsOf(world, one).length === 0)) return false
  const parent = oneOf(random, parents)
  const body = kind.body(world, random)
  if (kind.name === 'tags') body.digest = await plantManifest(world.pinfold, parent, `image ${random.below(3)}`)
  const path = `${kind[version].path}/${parent}`
  const answer = await watched(world, kind, () => {
    return world.pinfold.operator.post(path, version === 'v1' ? kind.toV1(body) : body)
  })
  if (answer.status !== 200) {
    assert.ok([400, 404, 409].includes(answer.status), `${path}: ${answer.text}`)
    return false
  }
  const uid = answer.body.uid ?? answer.body.id
  const set = world.there.get(kind.name) ?? new Set()
  world.there.set(kind.name, set.add(uid))
  return true
}

async function update(world: World, random: Random, kind: Kind, version: 'v1' | 'v2', uid: string): Promise<boolean> {
  if (!kind.changes) return false
  const { name, ...body } = kind.body(world, random)
  const { operator } = world.pinfold
  const before = ok(await operator.get(`${kind.v2.path}/${uid}`))
  const answer = await watched(world, kind, () => {
    if (version === 'v2') return operator.patch(`${kind.v2.path}/${uid}`, body)
    return operator.call('PUT', `${kind.v1.path}/${uid}`, kind.toV1({ ...body, name: before.name }))
  })
  ok(answer)
  return true
}

async function remove(world: World, kind: Kind, version: 'v1' | 'v2', uid: string): Promise<boolean> {
  const { operator } = world.pinfold
  // Deleting an identity also deletes its bindings, each with its own event.
  const bound = kind.name === 'identities' ? ok(await operator.get(`/iam/v2/roleBindings?identity=${uid}`)) : {}
  const events = 1 + Number(bound.totalCount ?? 0)
  const answer = await watched(world, kind, () => operator.delete(`${kind[version].path}/${uid}`), events)
  if (answer.status !== 200) {
    assert.equal(answer.body.code, 9, `${kind.name}: ${answer.text}`)
    return false
  }
  // Resources below the deleted resource, and its bindings, are deleted too.
  for (const other of kinds) {
    for (const one of uidsOf(world, other.name)) {
      if (one === uid || one.startsWith(`${uid}/`)) world.there.get(other.name)!.delete(one)
    }
  }
  const bindings = await listV2(world, kinds.find(({ name }) => name === 'bindings')!)
  world.there.set('bindings', new Set(bindings.items.map((one) => one.uid)))
  return true
}

/** Asserts that a successful call writes exactly the given number of events, and a failed call none, in both versions. */
async function watched(world: World, { name }: Kind, call: () => Promise<Answer>, events = 1): Promise<Answer> {
  const { db } = world.pinfold.app
  const last = async () => (await db.get<{ total: number }>(sql`SELECT count(*) AS total FROM events_outbox`))!.total
  const before = await last()
  const answer = await call()
  assert.equal((await last()) - before, answer.status === 200 ? events : 0, `${name}: events of ${answer.status}`)
  return answer
}

async function listV2(world: World, kind: Kind): Promise<{ items: Json[]; total: number }> {
  const items: Json[] = []
  for (let token = ''; ; ) {
    const query = `uidp.descendantsOf=${world.organization}&page_size=200&page_token=${token}`
    const hidden = kind.name === 'tags' ? '&includeReferrers=true&includeDates=true&includeEpochs=true' : ''
    const body = ok(await world.pinfold.operator.get(`${kind.v2.path}?${query}${hidden}`))
    items.push(...body[kind.v2.member])
    token = body.nextPageToken
    if (token === '') return { items, total: Number(body.totalCount) }
  }
}

async function compareAll(world: World, when: string): Promise<void> {
  for (const kind of kinds) {
    const newer = await listV2(world, kind)
    const query = `uidp.descendantsOf=${world.organization}`
    const older = ok(await world.pinfold.operator.get(`${kind.v1.path}?${query}`)).items as Json[]
    const sorted = (list: Json[]) => list.map(kind.seen).sort((a, b) => (a.id < b.id ? -1 : 1))
    assert.deepEqual(sorted(older), sorted(newer.items), `${kind.name}, ${when}`)
    assert.equal(newer.total, older.length, `the total of ${kind.name}, ${when}`)
    const known = newer.items.map(({ uid }) => uid).sort()
    assert.deepEqual(known, uidsOf(world, kind.name), `${kind.name} that should be there, ${when}`)
  }
}

function ok({ status, text, body }: Answer): Json {
  assert.equal(status, 200, text)
  return body
}
