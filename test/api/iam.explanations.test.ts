// Explanations of the rights of an identity on a group, or of their absence.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { assertDenied, assertInvalid, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const { pinfold, operator, org, ...scene } = await startScene({}, { name: 'acme' })
after(() => pinfold[Symbol.asyncDispose]())
const team = await pinfold.seed.group(org.uid, { name: 'team' })
const repo = await pinfold.seed.repo(team.uid, { name: 'app' })
const owner = await scene.member(roleUids.owner)

const ask = (client: Client, uid: string, identityUid: string, capability = 'CAP_REPO_UPDATE') =>
  client.get(`/control/v1/access/${uid}:explain?identityUid=${identityUid}&capability=${capability}`)
const explain = async (...asked: Parameters<typeof ask>): Promise<Json> => ok(await ask(...asked))
const bind = async (group: string, identityUid: string, roleUid: string) =>
  ok(await operator.post(`/iam/v2/roleBindings/${group}`, { identityUid, roleUid }))
const effectsOf = ({ bindings }: Json): string[] => bindings.map((one: Json) => one.effect.replace('EFFECT_', ''))
const namesOf = (items: Json[]): string[] => items.map(({ name }) => name)

test('names the bindings that give a capability, and the group that each is inherited from', async () => {
  const { uid } = await pinfold.seed.identity(org.uid, { name: 'ci' })
  const [viewer, editor] = [await bind(team.uid, uid, roleUids.viewer), await bind(org.uid, uid, roleUids.editor)]
  const found = await explain(owner, repo.uid, uid)
  const on = (group: Json, inherited: boolean) => ({ groupUid: group.uid, groupName: group.name, inherited })
  assert.deepEqual(found, {
    allowed: true,
    bindings: [
      { uid: editor.uid, roleUid: roleUids.editor, roleName: 'editor', ...on(org, true), effect: 'EFFECT_GRANTS' },
      {
        uid: viewer.uid,
        roleUid: roleUids.viewer,
        roleName: 'viewer',
        ...on(team, true),
        effect: 'EFFECT_ROLE_LACKS_IT',
      },
    ],
    sufficientRoles: [],
    grantors: [],
    groupRoles: [],
  })
  assert.equal((await explain(owner, team.uid, uid)).bindings[1].inherited, false)
  // The explanation agrees with the result of a real request.
  assert.equal(
    (await (await pinfold.as(uid)).patch(`/registry/v2/repos/${repo.uid}`, { description: 'x' })).status,
    200,
  )
})

test('names roles that include a missing capability, and members who can grant them', async () => {
  const { uid } = await pinfold.seed.identity(org.uid, { name: 'deploy' })
  const custom = await pinfold.seed.role(org.uid, ['repo.update'])
  const none = await explain(owner, repo.uid, uid)
  assert.deepEqual([none.allowed, none.bindings], [false, []])
  assert.equal(none.sufficientRoles[0].uid, custom.uid)
  assert.equal(none.sufficientRoles[0].capabilityCount, 1)
  assert.ok(namesOf(none.sufficientRoles).includes('editor'))
  assert.ok(!namesOf(none.sufficientRoles).includes('viewer'))
  assert.ok(!namesOf(none.sufficientRoles).includes('operator'))
  assert.deepEqual(
    none.grantors.map(({ groupUid, roleName }: Json) => [groupUid, roleName]),
    [[org.uid, 'owner']],
  )
  await bind(org.uid, uid, roleUids.viewer)
  assert.deepEqual(effectsOf(await explain(owner, repo.uid, uid)), ['ROLE_LACKS_IT'])
})

test('does not count a role that the person has not accepted, or above the group of a workload', async () => {
  const { uid: person } = await pinfold.seed.person({ name: 'Jane' })
  ok(await owner.post(`/iam/v2/roleBindings/${org.uid}`, { identityUid: person, roleUid: roleUids.editor }))
  const waiting = await explain(owner, repo.uid, person)
  assert.deepEqual([waiting.allowed, effectsOf(waiting)], [false, ['NOT_ACCEPTED']])
  assert.doesNotMatch(JSON.stringify(waiting), /Jane/)

  const { uid: inFolder } = await pinfold.seed.identity(team.uid, { name: 'builder' })
  await bind(team.uid, inFolder, roleUids.editor)
  assert.equal((await explain(owner, repo.uid, inFolder)).allowed, true)
  const above = await explain(owner, org.uid, inFolder)
  assert.deepEqual([above.allowed, above.bindings, above.sufficientRoles], [false, [], []])
})

test('does not list an identity as grantor because of a binding above its own parent group', async () => {
  const { uid } = await pinfold.seed.identity(org.uid, { name: 'waiting' })
  const { uid: below } = await pinfold.seed.identity(team.uid, { name: 'below' })
  const giver = await bind(team.uid, below, roleUids.owner)
  const grantors = async (): Promise<string[]> =>
    (await explain(owner, repo.uid, uid)).grantors.map(({ identityUid }: Json) => identityUid)
  assert.ok((await grantors()).includes(below))
  await pinfold.app.db.tx((tx) =>
    tx.run(sql`UPDATE role_bindings SET parent_uid = ${org.uid} WHERE uid = ${giver.uid}`),
  )
  assert.ok(!(await grantors()).includes(below))
  await pinfold.app.db.tx((tx) => tx.run(sql`DELETE FROM role_bindings WHERE uid = ${giver.uid}`))
})

test('counts a binding also if the list of bindings is truncated', async () => {
  const { uid } = await pinfold.seed.identity(org.uid, { name: 'much' })
  for (let i = 0; i < 101; i++) {
    const role = await pinfold.seed.role(org.uid, [i === 0 ? 'repo.update' : 'repo.list'], { name: `many ${i}` })
    await bind(org.uid, uid, role.uid)
  }
  const { allowed, bindings } = await explain(owner, repo.uid, uid)
  assert.deepEqual([allowed, bindings.length], [true, 100])
})

test('shows bindings of groups above only where the caller can list them', async () => {
  const { uid } = await pinfold.seed.identity(org.uid, { name: 'robot' })
  await bind(org.uid, uid, roleUids.editor)
  const below = await scene.member(roleUids.owner, team.uid)
  const found = await explain(below, repo.uid, uid)
  const hidden = { uid: '', groupName: '', roleUid: '', roleName: '' }
  const shown = { ...hidden, groupUid: org.uid, inherited: true, effect: 'EFFECT_GRANTS' }
  assert.deepEqual([found.allowed, found.bindings], [true, [shown]])

  const lacking = await explain(below, repo.uid, uid, 'CAP_IAM_ROLES_CREATE')
  assert.ok(lacking.grantors.length > 0)
  for (const { groupUid } of lacking.grantors) assert.equal(groupUid, team.uid)
})

test('returns the same answer for an identity of another organization and for a missing identity', async () => {
  const elsewhere = await pinfold.seed.group()
  const foreign = await pinfold.seed.identity(elsewhere.uid, { name: 'secret' })
  const answers = await Promise.all(
    [foreign.uid, `${elsewhere.uid}/${'0'.repeat(16)}`].map((uid) => ask(owner, org.uid, uid)),
  )
  assert.deepEqual(ok(answers[0]!), ok(answers[1]!))
})

test('denies callers without permission to list bindings, and names the field of an invalid request', async () => {
  const { uid } = await pinfold.seed.identity(org.uid, { name: 'asked' })
  const clients = [await scene.stranger(), await scene.foreigner(), await scene.holding('repo.list')]
  for (const client of clients) assertDenied(await ask(client, org.uid, uid))
  assertDenied(await ask(await scene.member(roleUids.owner, team.uid), org.uid, uid))
  assertInvalid(await ask(owner, org.uid, 'x'), 'identity_uid')
  assertInvalid(await ask(owner, org.uid, ''), 'identity_uid')
  assertInvalid(await ask(owner, org.uid, uid, 'CAPABILITY_UNSPECIFIED'), 'capability')
})
