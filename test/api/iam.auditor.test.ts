// The role auditor: what it reads, and that it changes nothing. Capabilities that other capabilities include.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { builtInRoles } from '#domains/iam/access/built-in-roles.ts'
import { capabilities } from '#domains/iam/access/capabilities.ts'
import { assertDenied, ok } from '../support/expect.ts'
import { type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
let org: string
const auditorRole = builtInRoles.find(({ name }) => name === 'auditor')!
before(async () => {
  pinfold = await startPinfold()
  org = (await pinfold.seed.group()).uid
})
after(() => pinfold[Symbol.asyncDispose]())

const holding = async (roleUid: string): Promise<Client> => pinfold.as((await pinfold.seed.member(org, roleUid)).uid)
const holds = async (...names: string[]) => holding((await pinfold.seed.role(org, names)).uid)

const ofAudit = () => ['/events/v2/audit', `/events/v2/refusals/${org}`]
const ofPolicies = () =>
  ['retentionRules', 'tagRules', 'holds', 'quarantined', 'pullRules', 'pullRuleExceptions', 'retentionPlans']
    .map((kind) => `/registry/v2/${kind}`)
    .concat('/registry/v2/gates', '/registry/v2/gateExceptions')

test('an auditor reads the audit log, refused requests and policies', async () => {
  const rule = { name: 'kept', keepDaysAfter: 30, mode: 'ENFORCE' }
  const { uid } = ok(await pinfold.operator.post(`/registry/v2/retentionRules/${org}`, rule))
  const auditor = await holding(auditorRole.uid)
  for (const path of [...ofAudit(), ...ofPolicies()]) assert.equal((await auditor.get(path)).status, 200, path)
  assert.ok(ok(await auditor.get('/events/v2/audit')).auditEntries.length > 0)
  const { retentionRules } = ok(await auditor.get('/registry/v2/retentionRules')) as { retentionRules: Json[] }
  assert.deepEqual(
    retentionRules.map((one) => one.uid),
    [uid],
  )
  assert.equal(ok(await auditor.get(`/registry/v2/retentionRules/${uid}`)).name, 'kept')
})

test('an auditor changes nothing, and cannot read image content or other organizations', async () => {
  const auditor = await holding(auditorRole.uid)
  const { uid } = ok(
    await pinfold.operator.post(`/registry/v2/tagRules/${org}`, { name: 'fixed', tags: ['v.*'], immutable: true }),
  )
  assertDenied(await auditor.post(`/registry/v2/retentionRules/${org}`, { name: 'x', keepDaysAfter: 1 }))
  assertDenied(await auditor.delete(`/registry/v2/tagRules/${uid}`))
  assertDenied(await auditor.post(`/registry/v2/retentionPlans/${org}`, {}))
  const identity = (await pinfold.seed.identity(org)).uid
  assertDenied(await auditor.post(`/iam/v2/roleBindings/${org}`, { identityUid: identity, roleUid: roleUids.viewer }))
  const names = auditorRole.capabilities.map((number) => capabilities.get(number)!.name)
  assert.deepEqual(
    names.filter((name) => !/\.(?:list|get)$/.test(name) || /blobs/.test(name)),
    [],
  )
  const other = (await pinfold.seed.group()).uid
  assertDenied(await auditor.get(`/events/v2/refusals/${other}`))
})

test('an owner gives the role auditor and invites with it, and a viewer cannot', async () => {
  const [owner, viewer] = [await holding(roleUids.owner), await holding(roleUids.viewer)]
  const identityUid = (await pinfold.seed.identity(org)).uid
  ok(await owner.post(`/iam/v2/roleBindings/${org}`, { identityUid, roleUid: auditorRole.uid }))
  ok(await owner.post(`/iam/v2/groupInvites/${org}`, { roleUid: auditorRole.uid, ttl: '3600s' }))
  for (const path of ofAudit().slice(1)) assertDenied(await viewer.get(path))
  assert.deepEqual(ok(await viewer.get('/events/v2/audit')).auditEntries, [])
  const narrow = await pinfold.seed.role(org, ['role_bindings.create', 'identity.list'])
  const granter = await holding(narrow.uid)
  assertDenied(await granter.post(`/iam/v2/roleBindings/${org}`, { identityUid, roleUid: auditorRole.uid }))
})

test('a capability to change includes the one to read, in roles, in tokens and in explanations', async () => {
  const changer = await holds('role_bindings.update')
  ok(await changer.get(`/events/v2/refusals/${org}`))
  assertDenied(await changer.get(`/registry/v2/retentionRules/${org}/${'0'.repeat(16)}`))
  const settings = await holds('registry.settings.update')
  assertDenied(await settings.get(`/events/v2/refusals/${org}`))
  ok(await settings.get('/registry/v2/retentionRules'))
  const reader = await holds('audit.list')
  ok(await reader.get(`/events/v2/refusals/${org}`))

  const { uid } = await pinfold.seed.member(org, roleUids.owner)
  const number = (name: string) => [...capabilities.values()].find((one) => one.name === name)!.number
  const narrowed = await pinfold.as(uid, { cap: { [org]: [number('role_bindings.update')] } })
  ok(await narrowed.get(`/events/v2/refusals/${org}`))
  const me = ok(await (await pinfold.as(uid)).get('/auth/v1/ok'))
  assert.equal(me.capabilities[0].role.name, 'owner')
  const operator = ok(await pinfold.operator.get('/auth/v1/ok'))
  assert.equal(operator.capabilities[0].role.name, 'operator')
  const query = `identity_uid=${uid}&capability=CAP_AUDIT_LIST`
  const explained = ok(await pinfold.operator.get(`/control/v1/access/${org}:explain?${query}`))
  assert.equal(explained.allowed, true)
})

test('each capability has a bit of its own', () => {
  const masks = [...capabilities.values()].map(({ mask }) => mask)
  assert.equal(new Set(masks).size, masks.length)
})
