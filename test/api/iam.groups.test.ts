import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { operatorUid } from '#issuer/access-token.ts'
import {
  assertBlocked,
  assertDenied,
  assertError,
  assertInvalid,
  assertNotFound,
  assertTaken,
  assertTimes,
  eventsOf,
  ok,
  snake,
} from '../support/expect.ts'
import { type Client, type Json, roleUids, startPinfold } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const type = 'iam.pinfold.dev/Group'
const path = '/iam/v2/groups'
const missing = 'ab'.repeat(20)

const { pinfold, operator, org, ...scene } = await startScene({}, { name: 'acme' })
const owner = await scene.member(roleUids.owner)
const stranger = await scene.stranger()
after(() => pinfold[Symbol.asyncDispose]())

test('a new organization has a root uid, and only the fields in the request', async () => {
  const group = ok(await operator.post(`${path}/`, { name: 'new org', description: 'A place' }))
  assert.match(group.uid, /^[0-9a-f]{40}$/)
  assertTimes(group, 'createTime')
  assert.deepEqual(group, {
    uid: group.uid,
    name: 'new org',
    description: 'A place',
    resourceLimits: {},
    verified: false,
    createTime: group.createTime,
    updateTime: group.createTime,
    status: 'ORG_STATUS_READY',
  })
  assert.deepEqual(ok(await operator.get(`${path}/${group.uid}`)), group)
})

test('an organization is also created at the path without a slash', async () => {
  assert.match(ok(await operator.post(path, { name: 'no slash' })).uid, /^[0-9a-f]{40}$/)
})

test('ignores output-only fields when a group is created', async () => {
  const body = { name: 'outputs', resourceLimits: { repositories: 1 }, status: 'ORG_STATUS_SUSPENDED' }
  const times = { createTime: '2000-01-01T00:00:00Z', updateTime: '2000-01-01T00:00:00Z' }
  const group = ok(await operator.post(`${path}/`, { ...body, ...times }))
  assert.deepEqual(group.resourceLimits, {})
  assert.equal(group.status, 'ORG_STATUS_READY')
  assert.notEqual(group.createTime, '2000-01-01T00:00:00.000Z')
})

test('a folder is created below the parent in the path, and its uid starts with the uid of the parent', async () => {
  const group = ok(await owner.post(`${path}/${org.uid}`, { name: 'folder' }))
  assert.match(group.uid, new RegExp(`^${org.uid}/[0-9a-f]{16}$`))
  assert.deepEqual(ok(await owner.get(`${path}/${group.uid}`)), group)
})

test('accepts the last part of a uid as the parent', async () => {
  const one = await pinfold.seed.group(org.uid)
  const two = await pinfold.seed.group(one.uid)
  const tail = two.uid.slice(org.uid.length + 1)
  for (const parent of [tail, tail.slice(17)]) {
    const group = ok(await owner.post(`${path}/${parent}`, { name: `by ${parent.length}` }))
    assert.ok(group.uid.startsWith(`${two.uid}/`))
  }
})

test('accepts a name as the parent if the caller can see exactly one group with this name', async () => {
  const named = await pinfold.seed.group(org.uid, { name: 'by name' })
  const elsewhere = await pinfold.seed.group()
  await pinfold.seed.group(elsewhere.uid, { name: 'by name' })

  const group = ok(await owner.post(`${path}/by%20name`, { name: 'child' }))
  assert.ok(group.uid.startsWith(`${named.uid}/`))

  assertInvalid(await operator.post(`${path}/by%20name`, { name: 'other' }), 'parent')
})

test('a name that looks like the end of a uid still identifies its group', async () => {
  const named = await pinfold.seed.group(org.uid, { name: '00112233445566ff' })
  const group = ok(await owner.post(`${path}/00112233445566ff`, { name: 'child' }))
  assert.ok(group.uid.startsWith(`${named.uid}/`))
})

test('does not find a parent by its name if the caller cannot see it', async () => {
  const hidden = await pinfold.seed.group('', { name: 'hidden-parent' })
  assertNotFound(await owner.post(`${path}/${hidden.name}`, { name: 'x' }), type, 'hidden-parent')
  assertNotFound(await owner.post(`${path}/no-such-parent`, { name: 'x' }), type, 'no-such-parent')
})

test('returns an error if the parent uid does not exist', async () => {
  assertNotFound(await operator.post(`${path}/${missing}`, { name: 'x' }), type, missing)
  const below = `${missing}/0123456789abcdef`
  assertNotFound(await operator.post(`${path}/${below}`, { name: 'x' }), type, below)
  const gone = `${org.uid}/0123456789abcdef`
  assertNotFound(await owner.post(`${path}/${gone}`, { name: 'x' }), type, gone)
})

test('names and descriptions follow their patterns', async () => {
  const create = (body: Json) => operator.post(`${path}/${org.uid}`, body)
  for (const name of ['', 'Upper', 'a/b', 'ü', 'tab\t', 'x'.repeat(256)]) assertInvalid(await create({ name }), 'name')
  const answer = await create({})
  assertInvalid(answer, 'name')
  assert.equal(answer.body.message, 'Invalid argument: name: name must match "^[a-z0-9 ._-]{1,}$"')
  for (const description of ['two\nlines', 'tab\t', 'x'.repeat(513)]) {
    assertInvalid(await create({ name: 'fine', description }), 'description')
  }
  assertInvalid(await create({ name: 'NO', description: 'a\tb' }), 'name', 'description')
  ok(await create({ name: 'a0 ._-', description: 'ß'.repeat(512) }))
})

test('a name is unique among organizations and among siblings', async () => {
  await pinfold.seed.group(org.uid, { name: 'taken' })
  const other = await pinfold.seed.group(org.uid, { name: 'not taken' })
  assertTaken(await operator.post(`${path}/`, { name: 'acme' }), type, 'acme')
  assertTaken(await owner.post(`${path}/${org.uid}`, { name: 'taken' }), type, 'taken')
  assertTaken(await owner.patch(`${path}/${other.uid}`, { name: 'taken' }), type, 'taken')
  ok(await owner.post(`${path}/${other.uid}`, { name: 'taken' }))
  ok(await owner.patch(`${path}/${other.uid}`, { name: 'not taken' }))
})

test('one of several concurrent creations of the same name succeeds, and the others get 409', async () => {
  const creates = Array.from({ length: 4 }, () => operator.post(`${path}/`, { name: 'wanted by all' }))
  const statuses = (await Promise.all(creates)).map(({ status }) => status)
  assert.deepEqual(statuses.sort(), [200, 409, 409, 409])
})

test('groups can be nested ten levels deep', async () => {
  let parent = org.uid
  for (let depth = 2; depth <= 10; depth++) parent = (await pinfold.seed.group(parent)).uid
  assert.equal(parent.split('/').length, 10)
  assertInvalid(await operator.post(`${path}/${parent}`, { name: 'too deep' }), 'parent')
})

test('returns NOT_FOUND for a group that does not exist', async () => {
  const uid = `${org.uid}/0123456789abcdef`
  assertNotFound(await owner.get(`${path}/${uid}`), type, uid)
  assertNotFound(await owner.patch(`${path}/${uid}`, { description: 'x' }), type, uid)
  assertNotFound(await owner.delete(`${path}/${uid}`), type, uid)
  for (const method of ['GET', 'PATCH', 'DELETE']) {
    assertInvalid(await owner.call(method, `${path}/not-a-uid`, method === 'PATCH' ? {} : undefined), 'uid')
  }
})

test('denies a caller without rights whether or not the group exists, and refuses calls without a token', async () => {
  for (const uid of [org.uid, missing, `${org.uid}/0123456789abcdef`]) {
    assertDenied(await stranger.get(`${path}/${uid}`))
    assertDenied(await stranger.patch(`${path}/${uid}`, { description: 'x' }))
    assertDenied(await stranger.delete(`${path}/${uid}`))
    assertDenied(await stranger.post(`${path}/${uid}`, { name: 'x' }))
    const { anonymous } = pinfold
    for (const answer of [await anonymous.get(`${path}/${uid}`), await anonymous.post(`${path}/${uid}`, {})]) {
      assertError(answer, 401, 16, 'UNAUTHENTICATED')
    }
  }
  assert.deepEqual(ok(await stranger.get(path)), { groups: [], nextPageToken: '', totalCount: '0', skipped: 0 })
})

test('a viewer can read but not change a group', async () => {
  const viewer = await pinfold.as((await pinfold.seed.member(org.uid, roleUids.viewer)).uid)
  ok(await viewer.get(`${path}/${org.uid}`))
  assertDenied(await viewer.post(`${path}/${org.uid}`, { name: 'x' }))
  assertDenied(await viewer.patch(`${path}/${org.uid}`, { description: 'x' }))
  assertDenied(await viewer.delete(`${path}/${org.uid}`))
})

test('lists the groups that the caller can see, and filters by exact name', async () => {
  const root = await pinfold.seed.group()
  const child = await pinfold.seed.group(root.uid, { name: 'listed' })
  await pinfold.seed.group(root.uid, { name: 'listed too' })
  const viewer = await pinfold.as((await pinfold.seed.member(root.uid, roleUids.viewer)).uid)

  const all = ok(await viewer.get(`${path}?order_by=name`))
  assert.deepEqual(
    all.groups.map((group: Json) => group.name),
    [root.name, 'listed', 'listed too'],
  )
  assert.equal(all.totalCount, '3')
  const named = ok(await viewer.get(`${path}?name=listed`))
  assert.deepEqual(named, { groups: [child], nextPageToken: '', totalCount: '1', skipped: 0 })
  assert.deepEqual(ok(await viewer.get(`${path}?name=Listed`)).groups, [])
})

test('an update changes the named fields, and keeps output-only fields', async () => {
  const group = await pinfold.seed.group(org.uid, { description: 'old' })
  const body = { name: 'renamed', description: 'new', status: 'ORG_STATUS_SUSPENDED', resourceLimits: { idps: 3 } }
  const renamed = ok(await owner.patch(`${path}/${group.uid}`, body))
  assert.deepEqual(renamed, { ...group, name: 'renamed', description: 'new', updateTime: renamed.updateTime })
  assert.deepEqual(ok(await owner.get(`${path}/${group.uid}`)), renamed)

  const masked = ok(await owner.patch(`${path}/${group.uid}?updateMask=description`, { name: 'ignored' }))
  assert.deepEqual(masked, { ...renamed, description: '', updateTime: masked.updateTime })
  const replaced = ok(await owner.patch(`${path}/${group.uid}?updateMask=*`, { name: 'replaced' }))
  assert.deepEqual([replaced.name, replaced.description], ['replaced', ''])
})

test('validates an update like a creation', async () => {
  const group = await pinfold.seed.group(org.uid)
  assertInvalid(await owner.patch(`${path}/${group.uid}`, { name: 'NO' }), 'name')
  assertInvalid(await owner.patch(`${path}/${group.uid}?updateMask=name`, {}), 'name')
  assertInvalid(await owner.patch(`${path}/${group.uid}`, { description: 'a\nb' }), 'description')
  assertInvalid(await owner.patch(`${path}/${group.uid}?updateMask=nonsense`, {}), 'update_mask')
  assertInvalid(await owner.patch(`${path}/${group.uid}`, { uid: org.uid }), 'uid')
  assert.deepEqual(ok(await owner.get(`${path}/${group.uid}`)), group)
})

test('only the operator can set the verified flag and the kind', async () => {
  const domain = await pinfold.seed.group('', { name: 'staff.example.com' })
  const ownerOfIt = await pinfold.as((await pinfold.seed.member(domain.uid, roleUids.owner)).uid)
  assertDenied(await ownerOfIt.patch(`${path}/${domain.uid}`, { verified: true, kind: 'ORG_KIND_CUSTOMER' }))
  assertDenied(await ownerOfIt.patch(`${path}/${domain.uid}`, { kind: 'ORG_KIND_CUSTOMER' }))

  const kind = ok(await operator.patch(`${path}/${domain.uid}`, { kind: 'ORG_KIND_CUSTOMER' }))
  assert.deepEqual(kind, { ...domain, kind: 'ORG_KIND_CUSTOMER', updateTime: kind.updateTime })
  // Setting a field to its present value needs no permission.
  const same = ok(await ownerOfIt.patch(`${path}/${domain.uid}`, { verified: false, kind: 2, description: 'mine' }))
  assert.equal(same.description, 'mine')
})

test('a verified organization needs a domain as its name, and a kind', async () => {
  const create = (body: Json) => operator.post(`${path}/`, { verified: true, kind: 'ORG_KIND_CUSTOMER', ...body })
  for (const name of ['acme corp', 'nodots', 'under_score.com', '-a.com', 'a..com']) {
    assertInvalid(await create({ name }), 'name')
  }
  assertInvalid(await create({ name: 'no-kind.example.com', kind: 0 }), 'kind')
  assertInvalid(await create({ name: 'nothing', kind: 0 }), 'name', 'kind')
  assertInvalid(await create({ name: 'x.example.com', kind: 'ORG_KIND_NONE' }), 'kind')

  const made = ok(await create({ name: 'verified.example.com' }))
  assert.equal(made.verified, true)
  assert.equal(made.kind, 'ORG_KIND_CUSTOMER')
  assertTaken(await create({ name: 'verified.example.com' }), type, 'verified.example.com')
})

test('a verified organization cannot be renamed, not even by the operator', async () => {
  const body = { name: 'fixed.example.com', verified: true, kind: 'ORG_KIND_DEV' }
  const group = ok(await operator.post(`${path}/`, body))
  assertBlocked(await operator.patch(`${path}/${group.uid}`, { name: 'new.example.com' }), group.uid, 'VERIFIED_NAME')
  ok(await operator.patch(`${path}/${group.uid}`, { name: 'fixed.example.com', description: 'still here' }))
  ok(await operator.patch(`${path}/${group.uid}`, { verified: false }))
  ok(await operator.patch(`${path}/${group.uid}`, { name: 'new.example.com' }))
})

test('folders have the kind and status of their organization, and cannot set their own', async () => {
  const root = ok(await operator.post(`${path}/`, { name: 'kinds', kind: 'ORG_KIND_DEV' }))
  const folder = await pinfold.seed.group(root.uid)
  const deep = await pinfold.seed.group(folder.uid)
  assert.deepEqual([deep.kind, deep.status], ['ORG_KIND_DEV', 'ORG_STATUS_READY'])

  ok(await operator.patch(`${path}/${root.uid}`, { kind: 'ORG_KIND_INFRA' }))
  for (const { uid } of [folder, deep]) {
    assert.equal(ok(await operator.get(`${path}/${uid}`)).kind, 'ORG_KIND_INFRA')
  }

  assertInvalid(await operator.post(`${path}/${root.uid}`, { name: 'own kind', kind: 'ORG_KIND_DEV' }), 'kind')
  assertInvalid(await operator.patch(`${path}/${folder.uid}`, { kind: 'ORG_KIND_DEV' }), 'kind')
  const verified = { name: 'folder.example.com', verified: true, kind: 'ORG_KIND_DEV' }
  assertInvalid(await operator.post(`${path}/${root.uid}`, verified), 'verified')
  assertInvalid(await operator.patch(`${path}/${folder.uid}?updateMask=verified`, verified), 'verified')
})

test('a group can be deleted once, with an empty answer', async () => {
  const group = await pinfold.seed.group(org.uid)
  const answer = await owner.delete(`${path}/${group.uid}`)
  assert.equal(answer.status, 200)
  assert.equal(answer.text, '')
  assertNotFound(await owner.get(`${path}/${group.uid}`), type, group.uid)
  assertNotFound(await owner.delete(`${path}/${group.uid}`), type, group.uid)
  ok(await owner.post(`${path}/${org.uid}`, { name: group.name }))
})

test('refuses to delete a group that is not empty, with one violation for each kind of content', async () => {
  const root = await pinfold.seed.group()
  const folder = await pinfold.seed.group(root.uid)
  const repo = await pinfold.seed.repo(folder.uid)
  const identity = await pinfold.seed.identity(root.uid)
  const role = await pinfold.seed.role(root.uid, ['groups.list'])
  await pinfold.seed.role(root.uid, ['groups.list'])
  const remove = () => operator.delete(`${path}/${root.uid}`)

  const answer = await remove()
  assertBlocked(answer, root.uid, ...Array(4).fill('RESOURCE_NOT_EMPTY'))
  const described = answer.body.details[1].violations.map((violation: Json) => violation.description)
  for (const [i, kind] of ['folders', 'identities', 'roles', 'repositories'].entries())
    assert.match(described[i], new RegExp(kind))

  assertBlocked(await operator.delete(`${path}/${folder.uid}`), folder.uid, 'RESOURCE_NOT_EMPTY')
  ok(await operator.delete(`/registry/v2/repos/${repo.uid}`))
  ok(await operator.delete(`${path}/${folder.uid}`))
  ok(await operator.delete(`/iam/v2/identities/${identity.uid}`))
  ok(await operator.delete(`/iam/v2/roles/${role.uid}`))
  assertBlocked(await remove(), root.uid, 'RESOURCE_NOT_EMPTY')
})

test('deleting a group deletes the bindings on it', async () => {
  const folder = await pinfold.seed.group(org.uid)
  const identity = await pinfold.seed.identity(org.uid)
  const binding = await pinfold.seed.binding(folder.uid, identity.uid, roleUids.viewer)
  const guest = await pinfold.as(identity.uid)
  ok(await guest.get(`${path}/${folder.uid}`))

  ok(await owner.delete(`${path}/${folder.uid}`))
  assertDenied(await guest.get(`${path}/${folder.uid}`))
  assertNotFound(await owner.get(`/iam/v2/roleBindings/${binding.uid}`), 'iam.pinfold.dev/RoleBinding', binding.uid)
  assert.deepEqual(ok(await owner.get(`/iam/v2/roleBindings?identity=${identity.uid}`)).roleBindings, [])
})

test('an organization can be deleted although its owner is bound to it', async () => {
  const root = await pinfold.seed.group()
  const person = (await pinfold.seed.person()).uid
  await pinfold.seed.binding(root.uid, person, roleUids.owner)
  ok(await (await pinfold.as(person)).delete(`${path}/${root.uid}`))
})

test('only the operator creates organizations, and owns none of them', async () => {
  assertDenied(await owner.post(`${path}/`, { name: 'mine' }))
  assertDenied(await stranger.post(`${path}/`, { name: 'NOT EVEN VALID' }))
  const group = await pinfold.seed.group()
  assert.deepEqual(ok(await operator.get(`/iam/v2/roleBindings?group=${group.uid}`)).roleBindings, [])
})

test('a narrowed token of the operator creates groups only inside its scope', async () => {
  const narrowed = await pinfold.as(operatorUid, { cap: { [org.uid]: [101] } })
  ok(await narrowed.post(`${path}/${org.uid}`, { name: 'narrowed' }))
  assertDenied(await narrowed.post(`${path}/`, { name: 'narrowed org' }))
  const elsewhere = await pinfold.seed.group()
  assertDenied(await narrowed.post(`${path}/${elsewhere.uid}`, { name: 'narrowed' }))
})

test('every change writes one event, and a failed call none', async () => {
  const base = { audience: 'CUSTOMER', actor: operatorUid }
  let group: Json = {}
  const created = await eventsOf(pinfold, async () => {
    group = ok(await operator.post(`${path}/`, { name: 'events', description: 'd', kind: 'ORG_KIND_DEV' }))
  })
  const at = { subject: group.uid, group: group.uid, bodyType: 'pinfold.platform.iam.v2.Group' }
  assert.deepEqual(created, [{ ...base, ...at, type: 'dev.pinfold.api.iam.group.created.v1', body: snake(group) }])

  let folder: Json = {}
  const below = await eventsOf(pinfold, async () => {
    folder = ok(await operator.post(`${path}/${group.uid}`, { name: 'below' }))
  })
  assert.deepEqual([below.length, below[0]!.subject, below[0]!.group], [1, folder.uid, folder.uid])

  let changed: Json = {}
  const updated = await eventsOf(pinfold, async () => {
    changed = ok(await operator.patch(`${path}/${folder.uid}`, { description: 'new' }))
  })
  const onFolder = { ...at, subject: folder.uid, group: folder.uid }
  const type = 'dev.pinfold.api.iam.group.updated.v1'
  assert.deepEqual(updated, [{ ...base, ...onFolder, type, body: snake(changed) }])

  const nothing = await eventsOf(pinfold, async () => ok(await operator.patch(`${path}/${folder.uid}`, {})))
  assert.equal(nothing.length, 1)

  const failed = await eventsOf(pinfold, async () => {
    assertTaken(await operator.post(`${path}/`, { name: 'events' }), 'iam.pinfold.dev/Group', 'events')
    assertInvalid(await operator.post(`${path}/`, {}), 'name')
    assertInvalid(await operator.patch(`${path}/${group.uid}`, { name: 'NO' }), 'name')
    assertBlocked(await operator.delete(`${path}/${group.uid}`), group.uid, 'RESOURCE_NOT_EMPTY')
    assertDenied(await stranger.delete(`${path}/${folder.uid}`))
    assertNotFound(await operator.delete(`${path}/${missing}`), 'iam.pinfold.dev/Group', missing)
  })
  assert.deepEqual(failed, [])

  const deleted = await eventsOf(pinfold, async () => {
    ok(await operator.delete(`${path}/${folder.uid}`))
    ok(await operator.delete(`${path}/${group.uid}`))
  })
  const request = { ...base, bodyType: 'pinfold.platform.iam.v2.DeleteGroupRequest' }
  const gone = { ...request, type: 'dev.pinfold.api.iam.group.deleted.v1' }
  assert.deepEqual(deleted, [
    { ...gone, subject: folder.uid, group: group.uid, body: { uid: folder.uid } },
    { ...gone, subject: group.uid, group: '/', body: { uid: group.uid } },
  ])
})

test('on an open server, each person can create an organization and owns it', async () => {
  await using open = await startPinfold({ allowOrganizationCreation: true })
  const { uid } = await open.seed.person()
  const person = await open.as(uid)
  const group = ok(await person.post(`${path}/`, { name: 'mine' }))

  const { roleBindings } = ok(await person.get(`/iam/v2/roleBindings?group=${group.uid}`))
  assert.deepEqual(
    roleBindings.map((binding: Json) => [binding.identityUid, binding.roleUid, binding.group.uid]),
    [[uid, roleUids.owner, group.uid]],
  )
  ok(await person.post(`${path}/${group.uid}`, { name: 'folder' }))
  assert.deepEqual(await open.events(), Array(2).fill('dev.pinfold.api.iam.group.created.v1'))
  assertDenied(await person.post(`${path}/`, { name: 'staff.example.com', verified: true, kind: 1 }))
  assertInvalid(await person.post(`${path}/`, { name: 'NO' }), 'name')
  assertError(await open.anonymous.post(`${path}/`, { name: 'nobody' }), 401, 16, 'UNAUTHENTICATED')

  const byOperator = ok(await open.operator.post(`${path}/`, { name: 'operated' }))
  assert.deepEqual(ok(await open.operator.get(`/iam/v2/roleBindings?group=${byOperator.uid}`)).roleBindings, [])

  // The new group could not be bound to its creator, whose parent is another group.
  const machine = await open.as((await open.seed.identity(group.uid)).uid)
  assertDenied(await machine.post(`${path}/`, { name: 'ownerless' }))
})

test('refuses organization names with a meaning in paths, but keeps existing organizations with such names', async () => {
  await using open = await startPinfold({ allowOrganizationCreation: true, publicOrg: 'commons' })
  const person = await open.as((await open.seed.person()).uid)
  const create = (client: Client, name: string) => client.post(`${path}/`, { name })
  const mine = ok(await create(person, 'mine'))
  const rename = (name: string) => person.patch(`${path}/${mine.uid}`, { name })
  const views = ['at-20261101', 'at-20261101t120000z', 'min-7d', 'min-7d_hold-1h', 'min-7d_at-20261101', 'at-', 'min-x']
  for (const name of [...views, 'v2', 'witness', 'a'.repeat(40)]) {
    for (const client of [person, open.operator]) assertInvalid(await create(client, name), 'name')
    assertInvalid(await rename(name), 'name')
    // The name of a folder is never the first part of a path.
    ok(await person.post(`${path}/${mine.uid}`, { name }))
  }
  for (const name of ['at', 'min', 'atlas', 'minio', 'hold-1h', 'v21', 'a'.repeat(39)]) ok(await create(person, name))

  // An organization from before the rule.
  await open.app.db.tx((tx) => tx.run(sql`UPDATE groups SET name = 'min-7d' WHERE uid = ${mine.uid}`))
  const kept = ok(await person.patch(`${path}/${mine.uid}`, { name: 'min-7d', description: 'still here' }))
  assert.deepEqual([kept.name, kept.description], ['min-7d', 'still here'])
  ok(await rename('another'))
  assertInvalid(await rename('min-7d'), 'name')
})

test('only the operator can use the name of the public organization, and the error is the same if it exists', async () => {
  await using open = await startPinfold({ allowOrganizationCreation: true, publicOrg: 'commons' })
  const person = await open.as((await open.seed.person()).uid)
  const mine = ok(await person.post(`${path}/`, { name: 'mine' }))
  const refusals = async () => [
    (await person.post(`${path}/`, { name: 'commons' })).body,
    (await person.patch(`${path}/${mine.uid}`, { name: 'commons' })).body,
  ]
  const free = await refusals()
  for (const { code, details } of free) {
    assert.equal(code, 3)
    assert.equal(details[1].fieldViolations[0].field, 'name')
  }
  const commons = ok(await open.operator.post(`${path}/`, { name: 'commons' }))
  const withoutIds = (answers: Json[]) => answers.map(({ message, code }) => ({ message, code }))
  assert.deepEqual(withoutIds(await refusals()), withoutIds(free))
  ok(await person.post(`${path}/${mine.uid}`, { name: 'commons' }))

  // An owner of the public organization may change its other fields.
  const owner = await open.as((await open.seed.member(commons.uid, roleUids.owner)).uid)
  ok(await owner.patch(`${path}/${commons.uid}`, { name: 'commons', description: 'for everybody' }))
})
