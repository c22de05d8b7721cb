// Admission policies in the API: valid and invalid rules, and the required permissions.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { toJson } from '@bufbuild/protobuf'
import { sql } from '#db/sql.ts'
import { Gate_Mode, GatesService } from '#gen/pinfold/control/scanning/v1/gates_pb.ts'
import {
  type CheckedPolicy,
  CheckedPolicySchema,
  PolicyChecksService,
} from '#gen/pinfold/control/scanning/v1/policy_checks_pb.ts'
import { PolicyResult_Result } from '#gen/pinfold/registry/events_pb.ts'
import { assertDenied, assertInvalid, assertNotFound, eventsOf, ok, snake } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { startRegistry } from '../support/registry.ts'

const now = '2026-03-01T08:00:00.000Z'
let pinfold: Pinfold
let [org, repo] = ['', '']
let [owner, viewer, editor, stranger, elsewhere] = [] as unknown as [Client, Client, Client, Client, Client]
before(async () => {
  pinfold = await startPinfold({ clock: () => new Date(now) })
  const { seed } = pinfold
  org = (await seed.group('', { name: 'acme' })).uid
  repo = (await seed.repo(org, { name: 'app' })).uid
  const other = await seed.group('', { name: 'other' })
  const member = async (where: string, role: string) => pinfold.as((await seed.member(where, role)).uid)
  owner = await member(org, roleUids.owner)
  viewer = await member(org, roleUids.viewer)
  editor = await member(org, roleUids.editor)
  elsewhere = await member(other.uid, roleUids.owner)
  stranger = await pinfold.as((await seed.person()).uid)
})
after(() => pinfold[Symbol.asyncDispose]())

const path = '/registry/v2/gates'
const exceptionsPath = '/registry/v2/gateExceptions'
const digest = `sha256:${'1'.repeat(64)}`
const gate = (more: Json = {}): Json => ({ name: 'no-high', vulnerabilities: { leastSeverity: 'HIGH' }, ...more })
const exception = (more: Json = {}): Json => ({ digest, reason: 'known', expireTime: '2026-04-01T00:00:00Z', ...more })
const make = async (more: Json = {}, scope = repo): Promise<Json> =>
  ok(await owner.post(`${path}/${scope}`, gate(more)))

test('an admission policy can be created, read, listed, changed and deleted, each with an event', async () => {
  let made: Json = {}
  const [created] = await eventsOf(pinfold, async () => {
    made = await make()
  })
  assert.deepEqual(
    [created!.type, created!.subject, created!.group],
    ['dev.pinfold.control.scanning.gate.created.v1', made.uid, org],
  )
  assert.deepEqual(created!.body, snake(made))
  assert.deepEqual(made, {
    ...{ uid: made.uid, name: 'no-high', mode: 'DRY_RUN', exemptPulledDays: 0, createTime: now, updateTime: now },
    vulnerabilities: {
      ...{ leastSeverity: 'HIGH', onlyFixable: false, onlyExploited: false, afterDays: 0, unknown: 'PASS' },
      unknownSeverity: 'COUNTED_AS_HIGH',
    },
  })
  assert.deepEqual(ok(await viewer.get(`${path}/${made.uid}`)), made)
  assert.deepEqual(ok(await viewer.get(`${path}?scopeUid=${repo}`)).gates, [made])
  const changed = ok(await owner.call('PATCH', `${path}/${made.uid}`, { mode: 'ENFORCE', exemptPulledDays: 7 }))
  assert.deepEqual(changed, { ...made, mode: 'ENFORCE', exemptPulledDays: 7 })
  const fixable = { onlyFixable: true }
  const finer = ok(
    await owner.call('PATCH', `${path}/${made.uid}?updateMask=vulnerabilities.only_fixable`, {
      vulnerabilities: fixable,
    }),
  )
  assert.deepEqual(finer.vulnerabilities, { ...made.vulnerabilities, ...fixable })
  const other = ok(await owner.call('PATCH', `${path}/${made.uid}`, { endOfLife: {} }))
  assert.deepEqual([other.vulnerabilities, other.endOfLife], [undefined, {}], 'another kind takes its place')
  const back = ok(
    await owner.call('PATCH', `${path}/${made.uid}?updateMask=vulnerabilities.only_fixable`, {
      vulnerabilities: fixable,
    }),
  )
  const { leastSeverity, ...rest } = made.vulnerabilities
  assert.deepEqual([back.vulnerabilities, leastSeverity], [{ ...rest, ...fixable }, 'HIGH'])
  const [deleted] = await eventsOf(pinfold, async () => ok(await owner.delete(`${path}/${made.uid}`)))
  assert.equal(deleted!.type, 'dev.pinfold.control.scanning.gate.deleted.v1')
  assertNotFound(await owner.get(`${path}/${made.uid}`), 'registry.pinfold.dev/Gate', made.uid)
  const audit = ok(await owner.get(`/events/v2/audit?subject=${made.uid}`)).auditEntries
  assert.equal(audit.length, 6)
})

test('stores each kind of rule unchanged', async () => {
  const rules: Json[] = [
    {
      vulnerabilities: {
        ...{ leastSeverity: 'CRITICAL', onlyFixable: true, onlyExploited: true, afterDays: 30, unknown: 'DENY' },
        unknownSeverity: 'NOT_COUNTED',
      },
    },
    { endOfLife: {} },
    { cooldown: { minAgeDays: 7 } },
    { supportWindow: { minMonthsLeft: 6 } },
  ]
  for (const rule of rules) {
    const { uid } = ok(await owner.post(`${path}/${org}`, { name: 'one', ...rule }))
    const [[kind, said]] = Object.entries(rule) as [[string, Json]]
    assert.deepEqual(ok(await owner.get(`${path}/${uid}`))[kind], said)
    ok(await owner.delete(`${path}/${uid}`))
  }
})

test('a new policy treats unknown severities as high, and an update without this field keeps its value', async () => {
  const howOf = async (uid: string) => ok(await owner.get(`${path}/${uid}`)).vulnerabilities.unknownSeverity
  const { uid } = await make()
  assert.equal(await howOf(uid), 'COUNTED_AS_HIGH')
  const patch = async (vulnerabilities: Json) => ok(await owner.call('PATCH', `${path}/${uid}`, { vulnerabilities }))
  await patch({ leastSeverity: 'HIGH', unknownSeverity: 'NOT_COUNTED' })
  await patch({ leastSeverity: 'MEDIUM', onlyFixable: true })
  assert.equal(await howOf(uid), 'NOT_COUNTED')
  ok(await owner.call('PATCH', `${path}/${uid}`, { endOfLife: {} }))
  await patch({ leastSeverity: 'HIGH' })
  assert.equal(await howOf(uid), 'COUNTED_AS_HIGH', 'it is a new rule')
  assertInvalid(
    await owner.post(`${path}/${repo}`, gate({ vulnerabilities: { unknownSeverity: 7 } })),
    'vulnerabilities.unknown_severity',
  )
  ok(await owner.delete(`${path}/${uid}`))
})

test('a policy stored by an earlier release does not count unknown severities', async () => {
  const { uid } = await make()
  const rule = JSON.stringify({
    kind: 'vulnerabilities',
    leastSeverity: 'HIGH',
    onlyFixable: false,
    onlyExploited: false,
    afterDays: 0,
    unknown: 'PASS',
  })
  await pinfold.app.db.tx((tx) => tx.run(sql`DELETE FROM gates WHERE uid = ${uid}`))
  await pinfold.app.db.tx((tx) =>
    tx.run(sql`
      INSERT INTO gates (uid, group_uid, scope_uid, name, mode, rule, exempt_pulled_days, create_time, update_time)
      VALUES (${uid}, ${org}, ${repo}, 'stored', 'ENFORCE', ${rule}, 0, ${now}, ${now})`),
  )
  assert.equal(ok(await owner.get(`${path}/${uid}`)).vulnerabilities.unknownSeverity, 'NOT_COUNTED')
  ok(await owner.delete(`${path}/${uid}`))
})

test('refuses invalid values and names the field', async () => {
  for (const [field, wrong] of [
    ['name', { name: '' }],
    ['name', { name: '-a' }],
    ['name', { name: 'a b' }],
    ['name', { name: 'x'.repeat(129) }],
    ['vulnerabilities', { vulnerabilities: undefined }],
    ['vulnerabilities.after_days', { vulnerabilities: { afterDays: -1 } }],
    ['vulnerabilities.after_days', { vulnerabilities: { afterDays: 3651 } }],
    ['cooldown.min_age_days', { vulnerabilities: undefined, cooldown: {} }],
    ['cooldown.min_age_days', { vulnerabilities: undefined, cooldown: { minAgeDays: 3651 } }],
    ['support_window.min_months_left', { vulnerabilities: undefined, supportWindow: { minMonthsLeft: 121 } }],
    ['exempt_pulled_days', { exemptPulledDays: 91 }],
    ['exempt_pulled_days', { exemptPulledDays: -1 }],
    ['exempt_pulled_days', { exemptPulledDays: 1, vulnerabilities: undefined, cooldown: { minAgeDays: 1 } }],
  ] as const) {
    assertInvalid(await owner.post(`${path}/${repo}`, gate(wrong)), field)
  }
  const { uid } = await make()
  const mask = `${path}/${uid}?updateMask=vulnerabilities`
  assertInvalid(await owner.call('PATCH', mask, {}), 'vulnerabilities')
  ok(await owner.delete(`${path}/${uid}`))
  const missing = `${org}/${'0'.repeat(16)}`
  assertNotFound(await owner.post(`${path}/${missing}`, gate()), 'iam.pinfold.dev/Group', missing)
})

test('an exemption needs a digest, a reason and an expiry, can be revoked once, and stays visible', async () => {
  for (const [member, wrong] of [
    ['digest', { digest: 'latest' }],
    ['reason', { reason: ' ' }],
    ['reason', { reason: 'x'.repeat(2001) }],
    ['expire_time', { expireTime: undefined }],
    ['expire_time', { expireTime: now }],
    ['expire_time', { expireTime: '2026-05-31T00:00:00Z' }],
  ] as const) {
    assertInvalid(await owner.post(`${exceptionsPath}/${repo}`, exception(wrong)), `gate_exception.${member}`)
  }
  const made = ok(await owner.post(`${exceptionsPath}/${repo}`, exception()))
  assert.deepEqual(ok(await viewer.get(`${exceptionsPath}?scopeUid=${repo}`)).gateExceptions, [made])
  const revoked = ok(await owner.post(`${exceptionsPath}/${made.uid}:revoke`, {}))
  assert.deepEqual([revoked.revokeTime, revoked.revokedBy], [now, made.actor])
  assert.deepEqual(
    await eventsOf(pinfold, async () => {
      assert.deepEqual(ok(await owner.post(`${exceptionsPath}/${made.uid}:revoke`, {})), revoked)
    }),
    [],
  )
  assert.deepEqual(ok(await viewer.get(`${exceptionsPath}?scopeUid=${repo}`)).gateExceptions, [])
  const ended = ok(await viewer.get(`${exceptionsPath}?scopeUid=${repo}&includeEnded=true`)).gateExceptions
  assert.deepEqual(ended, [revoked])
  const audit = ok(await owner.get(`/events/v2/audit?subject=${made.uid}`)).auditEntries
  assert.equal(audit.length, 2)
})

test('denies callers without permission to manage, see or check policies and exemptions', async () => {
  const made = await make()
  const excepted = ok(await owner.post(`${exceptionsPath}/${repo}`, exception()))
  for (const client of [viewer, editor, stranger, elsewhere]) {
    assertDenied(await client.post(`${path}/${repo}`, gate()))
    assertDenied(await client.call('PATCH', `${path}/${made.uid}`, { mode: 'OFF' }))
    assertDenied(await client.delete(`${path}/${made.uid}`))
    assertDenied(await client.post(`${exceptionsPath}/${repo}`, exception()))
    assertDenied(await client.post(`${exceptionsPath}/${excepted.uid}:revoke`, {}))
    assertDenied(await client.post(`/registry/v1/repos/${repo}:checkPolicies`, { digest }))
  }
  for (const client of [stranger, elsewhere]) {
    assertDenied(await client.get(`${path}/${made.uid}`))
    assertDenied(await client.get(`${path}?scopeUid=${repo}`))
    assertDenied(await client.get(`${exceptionsPath}?scopeUid=${repo}`))
    assert.deepEqual(ok(await client.get(path)).gates, [])
    assert.deepEqual(ok(await client.get(exceptionsPath)).gateExceptions, [])
  }
  ok(await owner.delete(`${path}/${made.uid}`))
})

test('a check requires an existing tag or digest of the repository', async () => {
  const check = (body: Json, uid = repo) => owner.post(`/registry/v1/repos/${uid}:checkPolicies`, body)
  assertInvalid(await check({}), 'digest')
  assertInvalid(await check({ tag: 'a', digest }), 'tag')
  assertInvalid(await check({ tag: 'a/b' }), 'tag')
  assertInvalid(await check({ digest: 'latest' }), 'digest')
  assertNotFound(await check({ digest }), 'registry.pinfold.dev/Image', digest)
  assertNotFound(await check({ tag: 'none' }), 'registry.pinfold.dev/Tag', 'none')
  const missing = `${org}/${'0'.repeat(16)}`
  assertNotFound(await check({ digest }, missing), 'registry.pinfold.dev/Repo', missing)
})

test('gRPC manages and checks admission policies like REST', async () => {
  await using registry = await startRegistry()
  const { digest } = await registry.pusher.pushImage('acme/app', 'latest')
  const { repo: pushed } = await registry.app.paths.find('acme/app')
  const { uid } = pushed!
  using gates = grpcClientOf(registry, GatesService, registry.operator.token)
  using checks = grpcClientOf(registry, PolicyChecksService, registry.operator.token)
  const rule = { case: 'cooldown' as const, value: { minAgeDays: 7 } }
  const made = await gates.createGate({ parent: uid, gate: { name: 'young', rule } })
  assert.deepEqual([made.mode, made.rule.case], [Gate_Mode.DRY_RUN, 'cooldown'])
  const said = await checks.checkPolicies({ uid, digest })
  const [{ policyId, parameters, result }] = said.results as [CheckedPolicy]
  assert.deepEqual([policyId, result], [made.uid, PolicyResult_Result.DENIED])
  assert.deepEqual(parameters.reason!.kind, { case: 'stringValue', value: 'it has not had a tag for 7 days yet' })
  const { results } = ok(await registry.operator.post(`/registry/v1/repos/${uid}:checkPolicies`, { digest }))
  assert.deepEqual({ ...(toJson(CheckedPolicySchema, said.results[0]!) as Json), gaps: [] }, results[0])
})

test('lists admission policies in pages, and limits their number per organization', async () => {
  const { seed, operator } = pinfold
  const { uid } = await seed.group('', { name: 'many' })
  for (let i = 0; i < 50; i++) ok(await operator.post(`${path}/${uid}`, gate({ name: `g${i}` })))
  const refused = await operator.post(`${path}/${uid}`, gate())
  assert.deepEqual([refused.status, refused.body.code], [429, 8], refused.text)
  const first = ok(await operator.get(`${path}?scopeUid=${uid}&pageSize=30`))
  const rest = ok(await operator.get(`${path}?scopeUid=${uid}&pageSize=30&pageToken=${first.nextPageToken}`))
  const uids = [...first.gates, ...rest.gates].map((one: Json) => one.uid)
  assert.deepEqual([uids.length, new Set(uids).size, rest.nextPageToken], [50, 50, ''])
})
