import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
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
import { type Json, roleUids } from '../support/pinfold.ts'
import { publicKeys } from '../support/public-keys.ts'
import { startScene } from '../support/scene.ts'

const type = 'iam.pinfold.dev/RoleBinding'
const path = '/iam/v2/roleBindings'
const missing = 'ab'.repeat(20)
const person = () => randomBytes(20).toString('hex')

const { pinfold, operator, org, holding, ...scene } = await startScene({}, { description: 'An organization' })
const owner = await scene.member(roleUids.owner)
const stranger = await scene.stranger()
after(() => pinfold[Symbol.asyncDispose]())

test('the response to a new binding contains its identity, group and role', async () => {
  const claimMatch = { issuer: 'https://issuer.example.com', subject: 'repo:acme/web' }
  const identity = await pinfold.seed.identity(org.uid, { description: 'Builds', claimMatch })
  const role = await pinfold.seed.role(org.uid, ['repo.list'], { description: 'Lists' })
  const body = { identityUid: identity.uid, roleUid: role.uid }
  const binding = ok(await owner.post(`${path}/${org.uid}`, body))
  assert.match(binding.uid, new RegExp(`^${org.uid}/[0-9a-f]{16}$`))
  assertTimes(binding, 'createTime')
  assert.deepEqual(binding, {
    ...body,
    uid: binding.uid,
    identity: { uid: identity.uid, name: identity.name, description: 'Builds', ...claimMatch, email: '' },
    group: { uid: org.uid, name: org.name, description: 'An organization' },
    role: { uid: role.uid, name: role.name, description: 'Lists' },
    createTime: binding.createTime,
    updateTime: binding.createTime,
  })
  assert.deepEqual(ok(await owner.get(`${path}/${binding.uid}`)), binding)
})

test('shows subject and issuer if the relationship of the identity has them', async () => {
  const cases: [relationship: Json, subject: string, issuer: string][] = [
    [{ claimMatch: { issuerPattern: 'https://.*', subjectPattern: 'a|b' } }, 'a|b', 'https://.*'],
    [{ claimMatch: undefined, staticKeys: { issuer: 'i', subject: 's', issuerKeys: publicKeys } }, 's', 'i'],
    [{ claimMatch: undefined, awsIdentity: { awsAccount: '123456789012', arn: 'arn' } }, '', ''],
    [{ claimMatch: undefined, servicePrincipal: 2 }, '', ''],
  ]
  for (const [relationship, subject, issuer] of cases) {
    const { uid } = await pinfold.seed.identity(org.uid, relationship)
    const { identity } = await pinfold.seed.binding(org.uid, uid, roleUids.viewer)
    assert.deepEqual([identity.subject, identity.issuer], [subject, issuer])
  }
})

test('a person without an account can be bound; only the uid of the person is shown', async () => {
  const identityUid = person()
  const binding = ok(await owner.post(`${path}/${org.uid}`, { identityUid, roleUid: roleUids.viewer }))
  assert.deepEqual(binding.identity, {
    uid: identityUid,
    name: '',
    description: '',
    subject: '',
    issuer: '',
    email: '',
  })
})

test('ignores fields other than identity and role when a binding is created', async () => {
  const other = { group: { uid: missing }, identity: { uid: missing, name: 'x' }, createTime: '2000-01-01T00:00:00Z' }
  const body = { identityUid: person(), roleUid: roleUids.viewer, ...other }
  const binding = ok(await owner.post(`${path}/${org.uid}`, body))
  assert.equal(binding.group.uid, org.uid)
  assert.equal(binding.identity.uid, body.identityUid)
})

test('requires uids for identity and role', async () => {
  const create = (body: Json) => owner.post(`${path}/${org.uid}`, body)
  const [identityUid, roleUid] = [person(), roleUids.viewer]
  assertInvalid(await create({}), 'identity_uid', 'role_uid')
  assertInvalid(await create({ roleUid }), 'identity_uid')
  assertInvalid(await create({ identityUid }), 'role_uid')
  assertInvalid(await create({ identityUid: 'somebody', roleUid }), 'identity_uid')
  assertInvalid(await create({ identityUid, roleUid: 'viewer' }), 'role_uid')
})

test('returns an error if the group, the role or a nested identity does not exist', async () => {
  const [identityUid, roleUid] = [person(), roleUids.viewer]
  const gone = `${org.uid}/0123456789abcdef`
  const roleType = 'iam.pinfold.dev/Role'
  assertNotFound(await owner.post(`${path}/${gone}`, { identityUid, roleUid }), 'iam.pinfold.dev/Group', gone)
  assertInvalid(await owner.post(`${path}/${gone}`, {}), 'identity_uid', 'role_uid')
  for (const uid of [missing, gone, org.uid]) {
    assertNotFound(await owner.post(`${path}/${org.uid}`, { identityUid, roleUid: uid }), roleType, uid)
  }
  const nested = await owner.post(`${path}/${org.uid}`, { identityUid: gone, roleUid })
  assertNotFound(nested, 'iam.pinfold.dev/Identity', gone)
})

test('a custom role can be bound in its group and below, and not elsewhere', async () => {
  const [folder, sibling] = [await pinfold.seed.group(org.uid), await pinfold.seed.group(org.uid)]
  const role = await pinfold.seed.role(folder.uid, ['repo.list'])
  const below = await pinfold.seed.group(folder.uid)
  const body = { identityUid: person(), roleUid: role.uid }
  ok(await owner.post(`${path}/${folder.uid}`, body))
  ok(await owner.post(`${path}/${below.uid}`, body))
  for (const { uid } of [org, sibling]) {
    assertNotFound(await owner.post(`${path}/${uid}`, body), 'iam.pinfold.dev/Role', role.uid)
  }
})

test('an identity can be bound only on its own parent group or below', async () => {
  const [folder, sibling] = [await pinfold.seed.group(org.uid), await pinfold.seed.group(org.uid)]
  const below = await pinfold.seed.group(folder.uid)
  const elsewhere = await pinfold.seed.group()
  const { uid } = await pinfold.seed.identity(folder.uid)
  const create = (group: Json, identityUid: string) => {
    return operator.post(`${path}/${group.uid}`, { identityUid, roleUid: roleUids.viewer })
  }
  ok(await create(folder, uid))
  ok(await create(below, uid))
  for (const group of [org, sibling, elsewhere]) assertInvalid(await create(group, uid), 'identity_uid')
  // The error is the same for a missing identity, so callers get no information about identities of others.
  assertInvalid(await create(elsewhere, `${org.uid}/0123456789abcdef`), 'identity_uid')

  const binding = await pinfold.seed.binding(sibling.uid, person(), roleUids.viewer)
  assertInvalid(await operator.patch(`${path}/${binding.uid}`, { identityUid: uid }), 'identity_uid')
})

test('an identity can have each role on a group only once', async () => {
  const folder = await pinfold.seed.group(org.uid)
  const body = { identityUid: person(), roleUid: roleUids.viewer }
  const first = ok(await owner.post(`${path}/${org.uid}`, body))
  assertTaken(await owner.post(`${path}/${org.uid}`, body), type, first.uid)
  ok(await owner.post(`${path}/${folder.uid}`, body))
  const other = ok(await owner.post(`${path}/${org.uid}`, { ...body, roleUid: roleUids.editor }))
  assertTaken(await owner.patch(`${path}/${other.uid}`, { roleUid: roleUids.viewer }), type, first.uid)
})

test('refuses a binding to a role with capabilities that the caller does not hold there', async () => {
  const granter = await holding('role_bindings.create', 'role_bindings.update', 'repo.list')
  const weak = await pinfold.seed.role(org.uid, ['repo.list'])
  const create = (roleUid: string) => granter.post(`${path}/${org.uid}`, { identityUid: person(), roleUid })
  const binding = ok(await create(weak.uid))
  for (const stronger of [roleUids.viewer, roleUids.owner, roleUids.operator]) assertDenied(await create(stronger))

  assertDenied(await granter.patch(`${path}/${binding.uid}`, { roleUid: roleUids.viewer }))
  ok(await granter.patch(`${path}/${binding.uid}`, { identityUid: person() }))
  const strong = await pinfold.seed.binding(org.uid, person(), roleUids.viewer)
  assertDenied(await granter.patch(`${path}/${strong.uid}`, { identityUid: person() }))
  ok(await granter.patch(`${path}/${strong.uid}`, { roleUid: weak.uid }))

  const folder = await pinfold.seed.group(org.uid)
  const folderOwner = await pinfold.as((await pinfold.seed.member(folder.uid, roleUids.owner)).uid)
  const body = { identityUid: person(), roleUid: roleUids.viewer }
  assertDenied(await folderOwner.post(`${path}/${org.uid}`, body))
  ok(await folderOwner.post(`${path}/${folder.uid}`, body))
})

test('a narrowed token cannot grant more than it allows', async () => {
  const { uid } = await pinfold.seed.member(org.uid, roleUids.owner)
  const weak = await pinfold.seed.role(org.uid, ['repo.list'])
  const narrowed = await pinfold.as(uid, { cap: { [org.uid]: [401, 1605] } })
  const create = (roleUid: string) => narrowed.post(`${path}/${org.uid}`, { identityUid: person(), roleUid })
  ok(await create(weak.uid))
  assertDenied(await create(roleUids.viewer))
})

test('only the operator can bind the role operator', async () => {
  const { uid } = await pinfold.seed.person()
  const body = { identityUid: uid, roleUid: roleUids.operator }
  assertDenied(await owner.post(`${path}/${org.uid}`, body))
  const binding = ok(await operator.post(`${path}/${org.uid}`, body))
  // Refused even for a caller with the role operator, who holds each capability.
  const second = await pinfold.as(uid)
  const refused = [
    await second.post(`${path}/${org.uid}`, { ...body, identityUid: person() }),
    await second.patch(`${path}/${binding.uid}`, { identityUid: person() }),
    await second.post(`${path}:batchCreate`, {
      parent: org.uid,
      requests: [{ roleBinding: { ...body, identityUid: person() } }],
    }),
  ]
  for (const answer of refused) assertDenied(answer)
  ok(await second.post(`${path}/${org.uid}`, { identityUid: person(), roleUid: roleUids.owner }))
})

test('an update changes identity and role, but not the group', async () => {
  const identity = await pinfold.seed.identity(org.uid)
  const made = await pinfold.seed.binding(org.uid, identity.uid, roleUids.viewer)
  const at = `${path}/${made.uid}`
  const changed = ok(await owner.patch(at, { roleUid: roleUids.editor }))
  assert.equal(changed.role.name, 'editor')
  assert.deepEqual(changed, { ...made, roleUid: roleUids.editor, role: changed.role, updateTime: changed.updateTime })

  const identityUid = person()
  const moved = ok(await owner.patch(at, { identityUid, group: { uid: missing }, createTime: '2000-01-01T00:00:00Z' }))
  assert.deepEqual([moved.identity.uid, moved.identity.name, moved.group], [identityUid, '', made.group])
  assert.equal(moved.createTime, made.createTime)
  assert.deepEqual(ok(await owner.get(at)), moved)

  assertInvalid(await owner.patch(at, { roleUid: '' }), 'role_uid')
  assertInvalid(await owner.patch(`${at}?updateMask=identityUid`, {}), 'identity_uid')
  assertInvalid(await owner.patch(at, { roleUid: 'viewer' }), 'role_uid')
  assertNotFound(await owner.patch(at, { roleUid: missing }), 'iam.pinfold.dev/Role', missing)
  const gone = `${org.uid}/0123456789abcdef`
  assertNotFound(await owner.patch(at, { identityUid: gone }), 'iam.pinfold.dev/Identity', gone)
  assert.deepEqual(ok(await owner.get(at)), moved)
})

test('a deleted binding grants nothing', async () => {
  const { uid } = await pinfold.seed.person()
  const binding = await pinfold.seed.binding(org.uid, uid, roleUids.viewer)
  const client = await pinfold.as(uid)
  ok(await client.get(`/iam/v2/groups/${org.uid}`))
  const answer = await owner.delete(`${path}/${binding.uid}`)
  assert.equal(answer.status, 200)
  assert.equal(answer.text, '')
  assertDenied(await client.get(`/iam/v2/groups/${org.uid}`))
  assertNotFound(await owner.get(`${path}/${binding.uid}`), type, binding.uid)
})

test('deleting a binding again succeeds, for those who may delete there, and writes no event', async () => {
  const binding = await pinfold.seed.binding(org.uid, person(), roleUids.viewer)
  ok(await owner.delete(`${path}/${binding.uid}`))
  const events = await eventsOf(pinfold, async () => {
    for (const uid of [binding.uid, `${org.uid}/0123456789abcdef`]) {
      const answer = await owner.delete(`${path}/${uid}`)
      assert.deepEqual([answer.status, answer.text], [200, ''])
      assertDenied(await stranger.delete(`${path}/${uid}`))
    }
    ok(await operator.delete(`${path}/${missing}/0123456789abcdef`))
  })
  assert.deepEqual(events, [])
  assertInvalid(await owner.delete(`${path}/not-a-uid`), 'uid')
})

test('returns NOT_FOUND for a binding that does not exist', async () => {
  const uid = `${org.uid}/0123456789abcdef`
  assertNotFound(await owner.get(`${path}/${uid}`), type, uid)
  assertNotFound(await owner.patch(`${path}/${uid}`, { roleUid: roleUids.viewer }), type, uid)
})

test('denies a caller without rights, whether or not the binding exists', async () => {
  const { uid } = await pinfold.seed.binding(org.uid, person(), roleUids.viewer)
  for (const at of [uid, `${org.uid}/0123456789abcdef`, `${missing}/0123456789abcdef`]) {
    for (const client of [stranger, pinfold.anonymous]) {
      const answers = [
        await client.get(`${path}/${at}`),
        await client.patch(`${path}/${at}`, {}),
        await client.delete(`${path}/${at}`),
        await client.post(`${path}/${at}`, {}),
        await client.post(`${path}:batchCreate`, { parent: at, requests: [] }),
      ]
      for (const answer of answers) {
        if (client === stranger) assertDenied(answer)
        else assertError(answer, 401, 16, 'UNAUTHENTICATED')
      }
    }
  }
  assert.deepEqual(ok(await stranger.get(path)), { roleBindings: [], nextPageToken: '', totalCount: '0', skipped: 0 })
})

test('filters the list by identity, group and role together', async () => {
  const folder = await pinfold.seed.group(org.uid)
  const [one, two] = [person(), person()]
  const first = await pinfold.seed.binding(folder.uid, one, roleUids.viewer)
  const second = await pinfold.seed.binding(folder.uid, one, roleUids.editor)
  const third = await pinfold.seed.binding(folder.uid, two, roleUids.viewer)
  const above = await pinfold.seed.binding(org.uid, one, roleUids.viewer)
  const list = async (query: string) => {
    const { roleBindings, totalCount } = ok(await owner.get(`${path}?order_by=created_at&${query}`))
    assert.equal(totalCount, String(roleBindings.length))
    return roleBindings.map(({ uid }: Json) => uid).sort()
  }
  const uids = (...bindings: Json[]) => bindings.map(({ uid }) => uid).sort()
  assert.deepEqual(await list(`identity=${one}`), uids(first, second, above))
  assert.deepEqual(await list(`identity=${one}&group=${folder.uid}`), uids(first, second))
  assert.deepEqual(await list(`group=${folder.uid}&role=${roleUids.viewer}`), uids(first, third))
  assert.deepEqual(await list(`identity=${two}&group=${folder.uid}&role=${roleUids.editor}`), [])
  assert.deepEqual(await list(`identity=${one}&uidp.children_of=${folder.uid}`), uids(first, second))
  for (const name of ['identity', 'group', 'role']) assertInvalid(await owner.get(`${path}?${name}=nonsense`), name)
})

test('refuses to remove the last owner of an organization', async () => {
  const root = await pinfold.seed.group()
  const [one, two] = [(await pinfold.seed.person()).uid, person()]
  const first = await pinfold.seed.binding(root.uid, one, roleUids.owner)
  const at = `${path}/${first.uid}`
  const folder = await pinfold.seed.group(root.uid)
  await pinfold.seed.binding(folder.uid, two, roleUids.owner)
  await pinfold.seed.binding(root.uid, two, roleUids.editor)

  for (const client of [operator, await pinfold.as(one)]) {
    assertBlocked(await client.delete(at), root.uid, 'LAST_OWNER')
    assertBlocked(await client.patch(at, { roleUid: roleUids.viewer }), root.uid, 'LAST_OWNER')
    assertBlocked(await client.patch(at, { identityUid: two }), root.uid, 'LAST_OWNER')
    ok(await client.patch(at, { identityUid: one, roleUid: roleUids.owner }))
  }

  const second = await pinfold.seed.binding(root.uid, two, roleUids.owner)
  ok(await operator.patch(at, { roleUid: roleUids.viewer }))
  assertBlocked(await operator.delete(`${path}/${second.uid}`), root.uid, 'LAST_OWNER')
  ok(await operator.patch(at, { roleUid: roleUids.owner }))
  ok(await operator.delete(`${path}/${second.uid}`))
})

test('keeps one of two owners who are removed at the same time', async () => {
  const root = await pinfold.seed.group()
  const owners = [person(), person()]
  const bindings = await Promise.all(owners.map((uid) => pinfold.seed.binding(root.uid, uid, roleUids.owner)))
  const answers = await Promise.all(bindings.map(({ uid }) => operator.delete(`${path}/${uid}`)))
  const [refused, ...others] = answers.filter(({ status }) => status !== 200)
  assertBlocked(refused!, root.uid, 'LAST_OWNER')
  assert.deepEqual(others, [])
})

test('the last owner of a folder can be removed', async () => {
  const folder = await pinfold.seed.group(org.uid)
  const binding = await pinfold.seed.binding(folder.uid, person(), roleUids.owner)
  ok(await owner.delete(`${path}/${binding.uid}`))
})

test('each change writes one event, and a failed request writes none', async () => {
  const base = { audience: 'CUSTOMER', actor: operatorUid, group: org.uid }
  const body = { identityUid: person(), roleUid: roleUids.viewer }
  let made: Json = {}
  const created = await eventsOf(pinfold, async () => {
    made = ok(await operator.post(`${path}/${org.uid}`, body))
  })
  const about = { ...base, subject: made.uid, bodyType: 'pinfold.platform.iam.v2.RoleBinding' }
  assert.deepEqual(created, [{ ...about, type: 'dev.pinfold.api.iam.rolebindings.created.v1', body: snake(made) }])

  let changed: Json = {}
  const updated = await eventsOf(pinfold, async () => {
    changed = ok(await operator.patch(`${path}/${made.uid}`, { roleUid: roleUids.editor }))
  })
  assert.deepEqual(updated, [{ ...about, type: 'dev.pinfold.api.iam.rolebindings.updated.v1', body: snake(changed) }])

  const failed = await eventsOf(pinfold, async () => {
    assertTaken(await operator.post(`${path}/${org.uid}`, { ...body, roleUid: roleUids.editor }), type, made.uid)
    assertInvalid(await operator.patch(`${path}/${made.uid}`, { roleUid: '' }), 'role_uid')
    assertDenied(await stranger.delete(`${path}/${made.uid}`))
  })
  assert.deepEqual(failed, [])

  const deleted = await eventsOf(pinfold, async () => ok(await operator.delete(`${path}/${made.uid}`)))
  const request = { ...about, bodyType: 'pinfold.platform.iam.v2.DeleteRoleBindingRequest', body: { uid: made.uid } }
  assert.deepEqual(deleted, [{ ...request, type: 'dev.pinfold.api.iam.rolebindings.deleted.v1' }])
})
