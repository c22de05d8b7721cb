import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { builtInRoles, builtInVersion } from '#domains/iam/access/built-in-roles.ts'
import { installBuiltInRoles } from '#domains/iam/roles/roles.service.ts'
import { deleteRole } from '#domains/iam/roles/roles.store.ts'
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
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const type = 'iam.pinfold.dev/Role'
const path = '/iam/v2/roles'
const missing = 'ab'.repeat(20)

const { pinfold, operator, org, holding, ...scene } = await startScene()
const owner = await scene.member(roleUids.owner)
const stranger = await scene.stranger()
after(() => pinfold[Symbol.asyncDispose]())

test('a new role has its capabilities by name, without duplicates, in the order of the contract', async () => {
  const capabilities = ['CAP_REPO_LIST', 'CAP_IAM_GROUPS_LIST', 'CAP_REPO_LIST']
  const role = ok(await owner.post(`${path}/${org.uid}`, { name: 'puller', description: 'Pulls', capabilities }))
  assert.match(role.uid, new RegExp(`^${org.uid}/[0-9a-f]{16}$`))
  assertTimes(role, 'createTime')
  assert.deepEqual(role, {
    uid: role.uid,
    name: 'puller',
    description: 'Pulls',
    capabilities: ['CAP_IAM_GROUPS_LIST', 'CAP_REPO_LIST'],
    createTime: role.createTime,
    updateTime: role.createTime,
  })
  assert.deepEqual(ok(await owner.get(`${path}/${role.uid}`)), role)
})

test('accepts a capability as its enum name, as its dotted name, or as its number', async () => {
  const capabilities = ['CAP_IAM_GROUPS_LIST', 'repo.list', 1613]
  const role = ok(await owner.post(`${path}/${org.uid}`, { name: 'spellings', capabilities }))
  assert.deepEqual(role.capabilities, ['CAP_IAM_GROUPS_LIST', 'CAP_REPO_LIST', 'CAP_TAG_LIST'])
})

test('a role requires a capability, and accepts only capabilities of the contract', async () => {
  const create = (body: Json) => operator.post(`${path}/${org.uid}`, { name: 'caps', ...body })
  assertInvalid(await create({}), 'capabilities')
  assertInvalid(await create({ capabilities: [] }), 'capabilities')
  for (const unknown of ['CAP_NONSENSE', 'non.sense', 424242, true]) {
    assertInvalid(await create({ capabilities: ['repo.list', unknown] }), 'capabilities[1]')
  }
  for (const zero of [0, 'UNKNOWN', '']) {
    const answer = await create({ capabilities: [zero] })
    assert.equal(answer.status, 400)
    assert.equal(answer.body.code, 3)
  }
})

test('names and descriptions follow their patterns', async () => {
  const create = (body: Json) => owner.post(`${path}/${org.uid}`, { capabilities: ['repo.list'], ...body })
  for (const name of ['', 'Upper', 'a/b', 'x'.repeat(256)]) assertInvalid(await create({ name }), 'name')
  assertInvalid(await create({ name: 'fine', description: 'two\nlines' }), 'description')
  const empty = await owner.post(`${path}/${org.uid}`, {})
  assertInvalid(empty, 'name', 'capabilities')
  assert.equal(empty.body.message, 'Invalid argument: name: name must match "^[a-z0-9 ._-]{1,}$"')
})

test('a role name is unique in its group', async () => {
  await pinfold.seed.role(org.uid, ['repo.list'], { name: 'taken' })
  const other = await pinfold.seed.role(org.uid, ['repo.list'])
  const body = { name: 'taken', capabilities: ['repo.list'] }
  assertTaken(await owner.post(`${path}/${org.uid}`, body), type, 'taken')
  assertTaken(await owner.patch(`${path}/${other.uid}`, { name: 'taken' }), type, 'taken')
  const folder = await pinfold.seed.group(org.uid)
  ok(await owner.post(`${path}/${folder.uid}`, body))
  ok(await owner.post(`${path}/${folder.uid}`, { ...body, name: 'viewer' }))
})

test('requires an existing group as the parent of a role', async () => {
  const parent = `${org.uid}/0123456789abcdef`
  const answer = await owner.post(`${path}/${parent}`, { name: 'x', capabilities: ['repo.list'] })
  assertNotFound(answer, 'iam.pinfold.dev/Group', parent)
  assertInvalid(await owner.post(`${path}/${parent}`, { capabilities: ['repo.list'] }), 'name')
  assertInvalid(await owner.post(`${path}/`, { name: 'x', capabilities: ['repo.list'] }), 'parent')
})

test('refuses to add a capability to a role that the caller does not hold there', async () => {
  const maker = await holding('roles.create', 'roles.update', 'repo.list')
  const create = (...capabilities: string[]) => maker.post(`${path}/${org.uid}`, { name: 'limited', capabilities })
  assertDenied(await create('repo.list', 'repo.delete'))
  const role = ok(await create('repo.list', 'roles.create'))
  assertDenied(await maker.patch(`${path}/${role.uid}`, { capabilities: ['repo.list', 'repo.delete'] }))
  ok(await maker.patch(`${path}/${role.uid}`, { capabilities: ['repo.list'] }))

  // Capabilities that are already in the role may stay or be removed.
  ok(await owner.patch(`${path}/${role.uid}`, { capabilities: ['repo.list', 'repo.delete', 'tag.list'] }))
  ok(await maker.patch(`${path}/${role.uid}`, { description: 'stays' }))
  const less = ok(await maker.patch(`${path}/${role.uid}`, { capabilities: ['repo.list', 'repo.delete'] }))
  assert.deepEqual(less.capabilities, ['CAP_REPO_LIST', 'CAP_REPO_DELETE'])
  assertDenied(await maker.patch(`${path}/${role.uid}`, { capabilities: ['repo.list', 'repo.delete', 'tag.list'] }))

  // Capabilities that the caller holds on other groups do not count here.
  const folder = await pinfold.seed.group(org.uid)
  const folderOwner = await pinfold.as((await pinfold.seed.member(folder.uid, roleUids.owner)).uid)
  assertDenied(await folderOwner.post(`${path}/${org.uid}`, { name: 'above', capabilities: ['repo.list'] }))
  ok(await folderOwner.post(`${path}/${folder.uid}`, { name: 'here', capabilities: ['repo.list'] }))
})

test('an internal capability requires the capability internal in the same role', async () => {
  const create = (client: Client, name: string, ...capabilities: string[]) => {
    return client.post(`${path}/${org.uid}`, { name, capabilities })
  }
  assertDenied(await create(owner, 'internal', 'repo.internal.admin'))
  assertDenied(await create(owner, 'internal', 'repo.internal.admin', 'internal'))
  assertDenied(await create(owner, 'internal', 'internal'))
  assertDenied(await create(operator, 'internal', 'repo.internal.admin'))

  const role = ok(await create(operator, 'internal', 'repo.internal.admin', 'internal'))
  assertDenied(await operator.patch(`${path}/${role.uid}`, { capabilities: ['repo.internal.admin'] }))
  ok(await operator.patch(`${path}/${role.uid}`, { capabilities: ['internal'] }))
  assertDenied(await operator.patch(`${path}/${role.uid}`, { capabilities: ['repo.list', 'repo.internal.admin'] }))
})

test('an update changes the named fields, and replaces the whole list of capabilities', async () => {
  const made = await pinfold.seed.role(org.uid, ['repo.list', 'tag.list'])
  const at = `${path}/${made.uid}`
  const named = ok(await owner.patch(at, { name: 'renamed role', description: 'new' }))
  const expected = { ...made, name: 'renamed role', description: 'new' }
  assert.deepEqual(named, { ...expected, updateTime: named.updateTime })
  const replaced = ok(await owner.patch(at, { capabilities: ['repo.list', 'manifest.list'] }))
  assert.deepEqual(replaced.capabilities, ['CAP_REPO_LIST', 'CAP_MANIFEST_LIST'])
  assert.equal(replaced.name, 'renamed role')
  const masked = ok(await owner.patch(`${at}?updateMask=description`, { capabilities: ['tag.list'] }))
  assert.deepEqual([masked.description, masked.capabilities], ['', replaced.capabilities])

  assertInvalid(await owner.patch(at, { capabilities: [] }), 'capabilities')
  assertInvalid(await owner.patch(`${at}?updateMask=capabilities`, {}), 'capabilities')
  assertInvalid(await owner.patch(at, { capabilities: ['CAP_NONSENSE'] }), 'capabilities[0]')
  assertInvalid(await owner.patch(at, { name: 'NO' }), 'name')
  assert.deepEqual(ok(await owner.get(at)), masked)
})

test('new capabilities of a role apply at once to its bindings', async () => {
  const role = await pinfold.seed.role(org.uid, ['groups.list', 'repo.list'])
  const client = await pinfold.as((await pinfold.seed.member(org.uid, role.uid)).uid)
  ok(await client.get(`/iam/v2/groups/${org.uid}`))
  ok(await owner.patch(`${path}/${role.uid}`, { capabilities: ['repo.list'] }))
  assertDenied(await client.get(`/iam/v2/groups/${org.uid}`))
  ok(await owner.patch(`${path}/${role.uid}`, { capabilities: ['repo.list', 'groups.list'] }))
  ok(await client.get(`/iam/v2/groups/${org.uid}`))
})

test('hides a capability of a later version in a stored role, and the role still works', async () => {
  const role = await pinfold.seed.role(org.uid, ['groups.list'])
  const client = await pinfold.as((await pinfold.seed.member(org.uid, role.uid)).uid)
  const stored = JSON.stringify([103, 900_001])
  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE roles SET capabilities = ${stored} WHERE uid = ${role.uid}`))

  const capabilities = ['CAP_IAM_GROUPS_LIST']
  assert.deepEqual(ok(await owner.get(`${path}/${role.uid}`)).capabilities, capabilities)
  assert.deepEqual(ok(await owner.get(`${path}?name=${role.name}`)).roles[0].capabilities, capabilities)
  assert.deepEqual(ok(await owner.patch(`${path}/${role.uid}`, { description: 'x' })).capabilities, capabilities)
  ok(await client.get(`/iam/v2/groups/${org.uid}`))
  const row = await pinfold.app.db.get<Json>(sql`SELECT capabilities FROM roles WHERE uid = ${role.uid}`)
  assert.equal(row!.capabilities, stored)
})

test('the built-in roles include each other, and cannot be changed or deleted', async () => {
  const read = async (uid: string) => ok(await operator.get(`${path}/${uid}`))
  const nested = [roleUids.console_viewer, roleUids.viewer, roleUids.editor, roleUids.owner, roleUids.operator]
  const roles = await Promise.all(nested.map(read))
  assert.deepEqual(
    roles.map(({ name }) => name),
    ['console_viewer', 'viewer', 'editor', 'owner', 'operator'],
  )
  for (const [i, role] of roles.entries()) {
    assert.match(role.description, /\(built-in\)$/)
    const next = roles[i + 1]
    if (!next) break
    assert.ok(role.capabilities.length < next.capabilities.length)
    for (const capability of role.capabilities) assert.ok(next.capabilities.includes(capability), capability)
  }
  for (const { uid } of roles) {
    assertBlocked(await operator.patch(`${path}/${uid}`, { description: 'mine' }), uid, 'BUILT_IN')
    assertBlocked(await operator.delete(`${path}/${uid}`), uid, 'BUILT_IN')
    assertDenied(await owner.patch(`${path}/${uid}`, { description: 'mine' }))
    assertDenied(await owner.delete(`${path}/${uid}`))
  }
})

test('the built-in roles have the capabilities that existing clients expect', async () => {
  const read = async (name: string) => {
    const [found, ...more] = ok(await operator.get(`${path}?name=${name}&uidp.in_root=true`)).roles as Json[]
    assert.deepEqual(more, [], name)
    return found!.capabilities as string[]
  }
  assert.deepEqual(await read('apk.pull'), ['CAP_IAM_GROUPS_LIST', 'CAP_APK_LIST', 'CAP_APK_BLOBS_GET'])
  for (const ecosystem of ['java', 'python', 'javascript', 'dotnet', 'go']) {
    const own = `CAP_LIBRARIES_${ecosystem.toUpperCase()}_LIST`
    assert.deepEqual(await read(`libraries.${ecosystem}.pull`), ['CAP_LIBRARIES_ENTITLEMENTS_LIST', own])
  }
  assert.deepEqual(await read('mcp.tool_user'), ['CAP_MCP_TOOL_CALL'])
  const sizes = { console_viewer: 45, viewer: 51, editor: 62, owner: 140, 'registry.pull': 10, 'registry.push': 20 }
  for (const [name, size] of Object.entries(sizes)) assert.equal((await read(name)).length, size, name)
  assert.equal((await read('registry.pull_token_creator')).length, 15)
  // The role owner had these capabilities before the sets that clients expect, and still has them.
  for (const kept of ['CAP_REGISTRY_SETTINGS_UPDATE', 'CAP_REGISTRY_DEPLOYMENTS_CREATE']) {
    assert.ok((await read('owner')).includes(kept), kept)
  }
})

test('a database of an earlier version gets the current built-in roles, also for existing bindings', async () => {
  const { db, clock } = pinfold.app
  const client = await pinfold.as((await pinfold.seed.member(org.uid, roleUids.viewer)).uid)
  const apk = ok(await operator.get(`${path}?name=apk.pull`)).roles[0]
  await db.tx(async (tx) => {
    await tx.run(sql`UPDATE roles SET capabilities = '[103]' WHERE uid = ${roleUids.viewer}`)
    await deleteRole(tx, { ...apk, capabilities: [] })
  })
  assertDenied(await client.get(`${path}/${(await pinfold.seed.role(org.uid, ['repo.list'])).uid}`))
  await installBuiltInRoles(db, clock().toISOString())
  ok(await client.get(`${path}/${(await pinfold.seed.role(org.uid, ['repo.list'])).uid}`))
  assert.deepEqual(ok(await operator.get(`${path}/${apk.uid}`)).capabilities, apk.capabilities)
  assert.equal(ok(await operator.get(`${path}?uidp.in_root=true`)).totalCount, '20')
})

test('a server of an older version leaves the built-in roles of a newer one in the database', async () => {
  const { db, clock } = pinfold.app
  const now = clock().toISOString()
  const viewer = async () =>
    (await db.get<{ capabilities: string }>(sql`SELECT capabilities FROM roles WHERE uid = ${roleUids.viewer}`))!
      .capabilities
  const before = await viewer()
  await db.tx((tx) => tx.run(sql`UPDATE facts SET value = '1000' WHERE name = 'built_in_roles'`))
  await db.tx((tx) => tx.run(sql`UPDATE roles SET capabilities = '[103]' WHERE uid = ${roleUids.viewer}`))
  await installBuiltInRoles(db, now)
  assert.equal(await viewer(), '[103]')
  await installBuiltInRoles(db, now, 1001)
  assert.equal(await viewer(), before)
  await db.tx((tx) => tx.run(sql`UPDATE facts SET value = ${String(builtInVersion)} WHERE name = 'built_in_roles'`))
})

test('a change of the built-in roles requires a new version number and a new digest in this test', () => {
  const text = JSON.stringify(builtInRoles)
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  assert.deepEqual({ [builtInVersion]: digest }, { 2: 'e95b0d4afb907afd' })
})

test('capabilities of features that this server does not have can be granted, and permit nothing', async () => {
  const capabilities = ['CAP_GULFSTREAM', 'CAP_TENANT_CLUSTERS_CREATE', 'CAP_POLICIES_POLICY_CREATE']
  const make = (client: Client, name: string) => client.post(`${path}/${org.uid}`, { name, capabilities })
  // An owner holds only the last of these capabilities.
  assertDenied(await make(owner, 'owner'))
  const role = ok(await make(operator, 'of elsewhere'))
  assert.deepEqual(role.capabilities, [capabilities[1], capabilities[2], capabilities[0]])
  const client = await scene.member(role.uid)
  assert.deepEqual(ok(await client.get('/auth/v1/ok')).capabilities[0].capabilities, [
    'clusters.create',
    'policies.policy.create',
    'gulfstream',
  ])
  assertDenied(await client.get(`/iam/v2/groups/${org.uid}`))
  assert.deepEqual(ok(await client.get('/registry/v2/repos')).repos, [])
  // Internal capabilities require the capability `internal` as well.
  const internal = ['CAP_BUILDAPI_BUILD_CREATE']
  assertDenied(await operator.post(`${path}/${org.uid}`, { name: 'inside', capabilities: internal }))
})

test('each caller can read built-in roles; custom roles require permission to list roles in their group', async () => {
  const role = await pinfold.seed.role(org.uid, ['repo.list'])
  assert.equal(ok(await stranger.get(`${path}/${roleUids.viewer}`)).name, 'viewer')
  assertDenied(await stranger.get(`${path}/${role.uid}`))
  assertDenied(await stranger.get(`${path}/${org.uid}/0123456789abcdef`))
  assertNotFound(await stranger.get(`${path}/${missing}`), type, missing)
  assertInvalid(await stranger.get(`${path}/not-a-uid`), 'uid')
  assertError(await pinfold.anonymous.get(`${path}/${roleUids.viewer}`), 401, 16, 'UNAUTHENTICATED')

  const lister = await holding('roles.list')
  ok(await lister.get(`${path}/${role.uid}`))
  assertDenied(await (await holding('groups.list')).get(`${path}/${role.uid}`))
  const gone = `${org.uid}/0123456789abcdef`
  assertNotFound(await lister.get(`${path}/${gone}`), type, gone)
})

test('lists the built-in roles, and the custom roles that the caller can see', async () => {
  const root = await pinfold.seed.group()
  const viewer = await pinfold.as((await pinfold.seed.member(root.uid, roleUids.viewer)).uid)
  const custom = await pinfold.seed.role(root.uid, ['repo.list'], { name: 'a custom one' })
  const names = (answer: Json) => answer.roles.map((role: Json) => role.name)

  const builtIn = ok(await viewer.get(`${path}?uidp.in_root=true&order_by=name`))
  assert.deepEqual(names(builtIn), [
    'advisories.admin',
    'advisories.approver',
    'advisories.creator',
    'advisories.viewer',
    'apk.pull',
    'auditor',
    'console_viewer',
    'editor',
    'libraries.dotnet.pull',
    'libraries.go.pull',
    'libraries.java.pull',
    'libraries.javascript.pull',
    'libraries.python.pull',
    'mcp.tool_user',
    'operator',
    'owner',
    'registry.pull',
    'registry.pull_token_creator',
    'registry.push',
    'viewer',
  ])
  assert.equal(builtIn.totalCount, '20')
  const all = ok(await viewer.get(`${path}?order_by=name`))
  assert.equal(all.totalCount, '21')
  assert.deepEqual(names(all), ['a custom one', ...names(builtIn)])
  const named = ok(await viewer.get(`${path}?name=a%20custom%20one`))
  assert.deepEqual(named, { roles: [custom], nextPageToken: '', totalCount: '1', skipped: 0 })
  assert.deepEqual(ok(await viewer.get(`${path}?uidp.children_of=${root.uid}`)).roles, [custom])

  const nothing = { roles: [], nextPageToken: '', totalCount: '0', skipped: 0 }
  assert.deepEqual(ok(await stranger.get(path)), nothing)
  assert.deepEqual(ok(await stranger.get(`${path}?uidp.in_root=true`)), nothing)
})

test('denies callers without write permission, whether or not the role exists', async () => {
  const { uid } = await pinfold.seed.role(org.uid, ['repo.list'])
  const lister = await holding('roles.list')
  for (const client of [stranger, lister]) {
    for (const at of [uid, `${org.uid}/0123456789abcdef`, missing]) {
      assertDenied(await client.patch(`${path}/${at}`, { name: 'NO' }))
      assertDenied(await client.delete(`${path}/${at}`))
      assertDenied(await client.post(`${path}/${at}`, { name: 'NO' }))
    }
  }
})

test('returns NOT_FOUND for a role that does not exist', async () => {
  const uid = `${org.uid}/0123456789abcdef`
  assertNotFound(await owner.patch(`${path}/${uid}`, { description: 'x' }), type, uid)
  assertNotFound(await owner.delete(`${path}/${uid}`), type, uid)
  assertNotFound(await operator.delete(`${path}/${missing}`), type, missing)
})

test('refuses to delete a role that is bound', async () => {
  const role = await pinfold.seed.role(org.uid, ['repo.list'])
  const identity = await pinfold.seed.identity(org.uid)
  const folder = await pinfold.seed.group(org.uid)
  const binding = await pinfold.seed.binding(folder.uid, identity.uid, role.uid)
  assertBlocked(await owner.delete(`${path}/${role.uid}`), role.uid, 'RESOURCE_IN_USE')
  ok(await owner.delete(`/iam/v2/roleBindings/${binding.uid}`))

  const answer = await owner.delete(`${path}/${role.uid}`)
  assert.equal(answer.status, 200)
  assert.equal(answer.text, '')
  assertNotFound(await owner.get(`${path}/${role.uid}`), type, role.uid)
  assertNotFound(await owner.delete(`${path}/${role.uid}`), type, role.uid)
})

test('each change writes one event, and a failed request writes none', async () => {
  const base = { audience: 'CUSTOMER', actor: operatorUid, group: org.uid }
  let made: Json = {}
  const created = await eventsOf(pinfold, async () => {
    made = ok(await operator.post(`${path}/${org.uid}`, { name: 'events', capabilities: ['repo.list', 'groups.list'] }))
  })
  const about = { ...base, subject: made.uid, bodyType: 'pinfold.platform.iam.v2.Role' }
  assert.deepEqual(created, [{ ...about, type: 'dev.pinfold.api.iam.roles.created.v1', body: snake(made) }])

  let changed: Json = {}
  const updated = await eventsOf(pinfold, async () => {
    changed = ok(await operator.patch(`${path}/${made.uid}`, { description: 'new' }))
  })
  assert.deepEqual(updated, [{ ...about, type: 'dev.pinfold.api.iam.roles.updated.v1', body: snake(changed) }])

  const failed = await eventsOf(pinfold, async () => {
    assertTaken(
      await operator.post(`${path}/${org.uid}`, { name: 'events', capabilities: ['repo.list'] }),
      type,
      'events',
    )
    assertInvalid(await operator.patch(`${path}/${made.uid}`, { capabilities: [] }), 'capabilities')
    assertBlocked(await operator.delete(`${path}/${roleUids.viewer}`), roleUids.viewer, 'BUILT_IN')
    assertDenied(await stranger.delete(`${path}/${made.uid}`))
    assertNotFound(await operator.delete(`${path}/${missing}`), type, missing)
  })
  assert.deepEqual(failed, [])

  const deleted = await eventsOf(pinfold, async () => ok(await operator.delete(`${path}/${made.uid}`)))
  const request = { ...about, bodyType: 'pinfold.platform.iam.v2.DeleteRoleRequest', body: { uid: made.uid } }
  assert.deepEqual(deleted, [{ ...request, type: 'dev.pinfold.api.iam.roles.deleted.v1' }])
})
