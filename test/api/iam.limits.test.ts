// Limits of identity and access management: accepts the largest value, and refuses the next.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { maxAccounts } from '#domains/iam/accounts/account-associations.model.ts'
import { life, most } from '#domains/iam/push-tokens/push-tokens.model.ts'
import { maxBatch } from '#domains/iam/roles/role-bindings.model.ts'
import { maxScimUsers } from '#domains/iam/scim/scim-users.model.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { assertError, assertInvalid, ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Answer, type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { assertScimError, changed, created, openEndpoint, patchSchema, userSchema } from '../support/scim.ts'

const now = '2026-03-01T08:00:00.000Z'
const issuerUrl = 'https://issuer.example.com'

let issuer: FakeIssuer
let pinfold: Pinfold
let org: string
let owner: Client
before(async () => {
  issuer = await startIssuer()
  pinfold = await startPinfold({
    allowInsecureIssuers: true,
    allowPrivateAddresses: true,
    scimRequests: 100_000,
    clock: () => new Date(now),
  })
  org = (await pinfold.seed.group('', { name: 'acme' })).uid
  owner = await pinfold.as((await pinfold.seed.member(org, roleUids.owner)).uid)
})
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))
const uidIn = (group: string, i: number): string => `${group}/${i.toString(16).padStart(16, '0')}`
const folder = async (): Promise<string> => (await pinfold.seed.group(org)).uid

/** Claims of exactly the given number of bytes, most of them in characters of two bytes. */
function claimsOfBytes(bytes: number): string {
  const text = '{"a":""}'
  const left = bytes - text.length
  return `{"a":"${'é'.repeat(Math.floor(left / 2))}${'x'.repeat(left % 2)}"}`
}

const pushToken = (group: string, body: Json) => owner.post(`/control/v1/pushTokens/${group}`, { name: 't', ...body })
const association = async (body: Json) =>
  owner.post(`/iam/v2/accountAssociations/${await folder()}`, { name: 'clouds', ...body })
const uuid = (i: number) => `7f5a6e3c-0000-4000-8000-${i.toString(16).padStart(12, '0')}`
const installations = (count: number) => ({ installations: many(count, (i) => ({ installationId: `${i + 1}` })) })

/** The limit, a request with a given amount, and the field in the error for one more. */
type Bound = { most: number; field: string; call: (size: number) => Promise<Answer> }
const bounds: Record<string, Bound> = {
  'bytes of claims that are checked': {
    most: 16 * 1024,
    field: 'claims',
    call: (bytes) =>
      owner.post(`/control/v1/claimChecks/${org}`, {
        claims: claimsOfBytes(bytes),
        match: { issuer: issuerUrl, subject: 'x' },
      }),
  },
  'repositories of a push token': {
    most: most.repos,
    field: 'repo_uids',
    call: async (count) => {
      const group = await folder()
      const repo = await pinfold.seed.repo(group)
      return pushToken(group, { repoUids: many(count, () => repo.uid) })
    },
  },
  'seconds of a push token': {
    most: life.most,
    field: 'ttl',
    call: (seconds) => pushToken(org, { ttl: `${seconds}s` }),
  },
  'client ids of an Azure account': {
    most: maxAccounts.clientIds,
    field: 'azure.client_ids',
    call: (count) => {
      const clientIds = Object.fromEntries(many(count, (i) => [`component${i}`, uuid(i)]))
      return association({ azure: { tenantId: uuid(0), clientIds } })
    },
  },
  'GitHub apps of an account': {
    most: maxAccounts.apps,
    field: 'github.app_installations',
    call: (count) =>
      association({
        github: { appInstallations: Object.fromEntries(many(count, (i) => [`${i + 1}`, installations(1)])) },
      }),
  },
  'installations of a GitHub app': {
    most: maxAccounts.installations,
    field: 'github.app_installations',
    call: (count) => association({ github: { appInstallations: { 1: installations(count) } } }),
  },
  'role bindings of a batch': {
    most: maxBatch,
    field: 'requests',
    call: async (count) => {
      const identities = await Promise.all(many(count, () => pinfold.seed.identity(org)))
      const requests = identities.map(({ uid }) => ({
        parent: org,
        roleBinding: { identityUid: uid, roleUid: roleUids.viewer },
      }))
      return owner.post('/iam/v2/roleBindings:batchCreate', { parent: org, requests })
    },
  },
  'seconds of an invite': {
    most: 30 * 24 * 60 * 60,
    field: 'ttl',
    call: (seconds) => owner.post(`/iam/v2/groupInvites/${org}`, { roleUid: roleUids.viewer, ttl: `${seconds}s` }),
  },
}
for (const [what, { most, field, call }] of Object.entries(bounds)) {
  test(`accepts at most ${most} ${what}`, async () => {
    ok(await call(most))
    assertInvalid(await call(most + 1), field)
  })
}

test('a push token is valid for at least an hour', async () => {
  ok(await pushToken(org, { ttl: `${life.least}s` }))
  assertInvalid(await pushToken(org, { ttl: `${life.least - 1}s` }), 'ttl')
})

test(`an account accepts at most ${maxAccounts.services} services`, async () => {
  const refused = (count: number) =>
    association({ pinfold: { serviceBindings: Object.fromEntries(many(count, (i) => [`s${i}`, uidIn(org, i)])) } })
  const fields = many(maxAccounts.services, (i) => `pinfold.service_bindings.s${i}`)
  assertInvalid(await refused(maxAccounts.services), ...fields)
  assertInvalid(await refused(maxAccounts.services + 1), 'pinfold.service_bindings')
})

test('a list accepts at most 1000 uids as a filter', async () => {
  using groups = grpcClientOf(pinfold, GroupsService, owner.token!)
  const ask = (count: number) =>
    groups.listGroups({ uidp: { ids: many(count, (i) => (i === 0 ? org : uidIn(org, i))) } })
  assert.deepEqual(
    (await ask(1000)).groups.map(({ uid }) => uid),
    [org],
  )
  await assert.rejects(ask(1001), /uidp.ids: must have at most 1000 uids/)
})

test(`an organization has at most ${most.ofOrganization} live push tokens; tokens of other organizations do not count`, async () => {
  const there = (await pinfold.seed.group()).uid
  const other = (await pinfold.seed.group()).uid
  const make = (group: string) => pinfold.operator.post(`/control/v1/pushTokens/${group}`, { name: 't' })
  const { uid: maker } = await pinfold.seed.identity(other)
  await pinfold.app.db.tx((tx) =>
    tx.run(sql`
      INSERT INTO push_tokens (uid, identity_uid, parent_uid, root_uid, user_name, secret_hash, name, repos, push, provider,
                               organization, external_id, issuer, create_time, expire_time, last_used_time, last_used_from)
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${most.ofOrganization})
      SELECT ${maker} || '/' || i, ${maker}, ${there}, ${there}, 'user-' || i, '', 't', '[]', 0, '', '', '', '', ${now},
             CASE WHEN i = 1 THEN ${now} ELSE '2026-04-01T00:00:00.000Z' END, '', ''
        FROM n`),
  )
  ok(await make(there))
  assertError(await make(there), 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
  ok(await make(other))
})

test(`a provider provisions at most ${maxScimUsers} people, including deleted ones`, async () => {
  const { provider, scim } = await openEndpoint(pinfold, owner, org, issuer.url)
  const other = await openEndpoint(pinfold, owner, org, issuer.url, 'another')
  const add = (name: string, client = scim) =>
    client.post('/Users', { schemas: [userSchema], userName: name, externalId: name, active: true })
  const removed = 10
  await pinfold.app.db.tx(async (tx) => {
    await tx.run(sql`
      INSERT INTO scim_users (id, provider_uid, user_name, user_name_key, external_id, active, resource, create_time,
                              update_time, emails_of)
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${maxScimUsers - removed - 1})
      SELECT 'planted-' || i, ${provider}, 'p' || i, 'p' || i, 'e' || i, 1, '{}', ${now}, ${now}, ${now} FROM n`)
    for (let i = 0; i < removed; i++) {
      await tx.run(sql`
        INSERT INTO scim_removals (provider_uid, external_id, remove_time) VALUES (${provider}, ${`gone-${i}`}, ${now})`)
    }
  })
  created(await add('last@acme.example'))
  assertScimError(await add('more@acme.example'), 403)
  created(await add('more@acme.example', other.scim))
})

test('a patch can add up to 1000 values to a list', async () => {
  const { scim } = await openEndpoint(pinfold, owner, org, issuer.url, 'values')
  const names = (from: number, count: number) => many(count, (i) => `name ${from + i}`)
  const sent = { schemas: [userSchema], userName: 'lists@acme.example', externalId: 'lists', nickNames: names(0, 1) }
  const { id } = created(await scim.post('/Users', sent))
  const add = (from: number, count: number) =>
    scim.patch(`/Users/${id}`, { op: 'add', path: 'nickNames', value: names(from, count) })
  assert.equal(changed(await add(1, 999)).nickNames.length, 1000)
  assertScimError(await add(1000, 1), 400, 'tooMany')
})

test('a patch accepts at most 100 operations', async () => {
  const { scim } = await openEndpoint(pinfold, owner, org, issuer.url, 'operations')
  const sent = { schemas: [userSchema], userName: 'ops@acme.example', externalId: 'ops' }
  const { id } = created(await scim.post('/Users', sent))
  const patch = (count: number) =>
    scim.call('PATCH', `/Users/${id}`, {
      schemas: [patchSchema],
      Operations: many(count, (i) => ({ op: 'replace', path: 'displayName', value: `n${i}` })),
    })
  assert.equal(changed(await patch(100)).displayName, 'n99')
  assertScimError(await patch(101), 400, 'tooMany')
})
