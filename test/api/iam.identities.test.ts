import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ServicePrincipalSchema } from '#gen/pinfold/iam/v2/identities_pb.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { claimsOf } from '../support/exchange.ts'
import {
  assertBlocked,
  assertDenied,
  assertError,
  assertInvalid,
  assertNotFound,
  assertTimes,
  eventsOf,
  ok,
  snake,
} from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { publicKeys } from '../support/public-keys.ts'
import { startScene } from '../support/scene.ts'

const type = 'iam.pinfold.dev/Identity'
const path = '/iam/v2/identities'
const claimMatch = { issuer: 'https://issuer.example.com', subject: 'repo:acme/web' }
const missing = 'ab'.repeat(20)

const { pinfold, org, ...scene } = await startScene()
const owner = await scene.member(roleUids.owner)
const stranger = await scene.stranger()
after(() => pinfold[Symbol.asyncDispose]())

test('a new identity has its relationship, no email address, and its creation time as last-seen time', async () => {
  const body = { name: 'ci', description: 'Builds', company: 'Acme, Inc.', claimMatch }
  const identity = ok(await owner.post(`${path}/${org.uid}`, body))
  assert.match(identity.uid, new RegExp(`^${org.uid}/[0-9a-f]{16}$`))
  assertTimes(identity, 'createTime')
  assert.deepEqual(identity, {
    ...body,
    uid: identity.uid,
    email: '',
    emailUnverified: '',
    claimMatch: { ...claimMatch, claims: {}, claimPatterns: {} },
    lastSeenTime: identity.createTime,
    createTime: identity.createTime,
    updateTime: identity.createTime,
  })
  assert.deepEqual(ok(await owner.get(`${path}/${identity.uid}`)), identity)
})

test('ignores output-only fields when an identity is created', async () => {
  const outputs = { email: 'a@b.example', emailUnverified: 'a@b.example', lastSeenTime: '2000-01-01T00:00:00Z' }
  const identity = ok(await owner.post(`${path}/${org.uid}`, { name: 'outputs', claimMatch, ...outputs }))
  assert.deepEqual([identity.email, identity.emailUnverified], ['', ''])
  assert.equal(identity.lastSeenTime, identity.createTime)
})

test('two identities can have the same name', async () => {
  const one = ok(await owner.post(`${path}/${org.uid}`, { name: 'same', claimMatch }))
  const two = ok(await owner.post(`${path}/${org.uid}`, { name: 'same', claimMatch }))
  assert.notEqual(one.uid, two.uid)
})

test('names, descriptions and companies follow their patterns', async () => {
  const create = (body: Json) => owner.post(`${path}/${org.uid}`, { claimMatch, ...body })
  for (const name of ['', 'Upper', 'a/b', 'x'.repeat(256)]) assertInvalid(await create({ name }), 'name')
  for (const description of ['two\nlines', 'x'.repeat(513)]) {
    assertInvalid(await create({ name: 'fine', description }), 'description')
    assertInvalid(await create({ name: 'fine', company: description }), 'company')
  }
  const empty = await owner.post(`${path}/${org.uid}`, {})
  assertInvalid(empty, 'name', 'relationship')
  assert.equal(empty.body.message, 'Invalid argument: name: name must match "^[a-z0-9 ._-]{1,}$"')
})

test('an identity has exactly one relationship', async () => {
  const create = (body: Json) => owner.post(`${path}/${org.uid}`, { name: 'one', ...body })
  assertInvalid(await create({}), 'relationship')
  const awsIdentity = { awsAccount: '123456789012', arn: 'arn:aws:iam::123456789012:root' }
  assertInvalid(await create({ claimMatch, awsIdentity }), 'aws_identity')
})

test('a claim match needs an issuer and a subject, each exact or as a pattern', async () => {
  const create = (match: Json) => owner.post(`${path}/${org.uid}`, { name: 'match', claimMatch: match })
  const { issuer, subject } = claimMatch
  const [issuerPattern, subjectPattern] = ['https://[a-z]+\\.example\\.com', '.*']

  const full = {
    issuerPattern,
    subjectPattern,
    audiencePattern: 'a|b',
    claims: { ref: 'main' },
    claimPatterns: { team: '^x' },
  }
  assert.deepEqual(ok(await create(full)).claimMatch, full)
  const mixed = { issuer, subjectPattern, audience: 'me', claims: {}, claimPatterns: {} }
  assert.deepEqual(ok(await create(mixed)).claimMatch, mixed)

  assertInvalid(await create({}), 'claim_match.issuer', 'claim_match.subject')
  assertInvalid(await create({ subject }), 'claim_match.issuer')
  assertInvalid(await create({ issuer, subject: '' }), 'claim_match.subject')
  assertInvalid(await create({ issuer, issuerPattern, subject }), 'claim_match.issuer_pattern')
  assertInvalid(await create({ issuer, subject, subjectPattern }), 'claim_match.subject_pattern')
  assertInvalid(await create({ ...claimMatch, audience: 'a', audiencePattern: 'a' }), 'claim_match.audience_pattern')
})

test('an exact issuer must use https, or http for an address on this machine', async () => {
  const create = (issuer: string) => {
    return owner.post(`${path}/${org.uid}`, { name: 'issuer', claimMatch: { issuer, subject: 's' } })
  }
  for (const issuer of [
    'http://issuer.example.com',
    'issuer.example.com',
    'https://issuer.example.com?x=1',
    'https://issuer.example.com#x',
    'https://user@issuer.example.com',
    'ftp://issuer.example.com',
  ]) {
    assertInvalid(await create(issuer), 'claim_match.issuer')
  }
  for (const issuer of ['https://issuer.example.com/realm/', 'http://localhost:9000', 'http://127.0.0.1']) {
    assert.equal(ok(await create(issuer)).claimMatch.issuer, issuer)
  }
})

test('refuses patterns that are not RE2 syntax or take more than 400 steps', async () => {
  const create = (body: Json) => owner.post(`${path}/${org.uid}`, { name: 'patterns', ...body })
  const { issuer, subject } = claimMatch
  for (const pattern of [
    '(?=x)',
    '(?!x)',
    '(?<=x)y',
    '(a)\\1',
    '(',
    '[',
    '*',
    `x{1001}`,
    'é'.repeat(513),
    'x'.repeat(396),
  ]) {
    const match = (more: Json) => create({ claimMatch: { issuer, subject, ...more } })
    assertInvalid(await create({ claimMatch: { issuerPattern: pattern, subject } }), 'claim_match.issuer_pattern')
    assertInvalid(await create({ claimMatch: { issuer, subjectPattern: pattern } }), 'claim_match.subject_pattern')
    assertInvalid(await match({ audiencePattern: pattern }), 'claim_match.audience_pattern')
    assertInvalid(await match({ claimPatterns: { team: pattern } }), 'claim_match.claim_patterns.team')
  }
  const long = 'x'.repeat(395)
  assert.equal(ok(await create({ claimMatch: { issuer, subjectPattern: long } })).claimMatch.subjectPattern, long)
})

test('static keys need issuer, subject and public keys, and accept at most one audience', async () => {
  const key = { ...JSON.parse(publicKeys).keys[0], kid: 'one' }
  const staticKeys = { issuer: 'made-up', subject: 's', issuerKeys: JSON.stringify({ keys: [key] }) }
  const create = (more: Json) =>
    owner.post(`${path}/${org.uid}`, { name: 'keys', staticKeys: { ...staticKeys, ...more } })

  const made = ok(await create({ audiences: ['me'] }))
  const expirationTime = new Date(Date.parse(made.createTime) + 365 * 24 * 3600 * 1000).toISOString()
  assert.deepEqual(made.staticKeys, { ...staticKeys, expirationTime, audiences: ['me'] })

  assertInvalid(await create({ issuer: '' }), 'static_keys.issuer')
  assertInvalid(await create({ issuer: 'push-token' }), 'static_keys.issuer')
  assertInvalid(await create({ subject: '' }), 'static_keys.subject')
  assertInvalid(await create({ audiences: ['a', 'b'] }), 'static_keys.audiences')
  const all = ['issuer', 'subject', 'issuer_keys'].map((name) => `static_keys.${name}`)
  assertInvalid(await owner.post(`${path}/${org.uid}`, { name: 'keys', staticKeys: {} }), ...all)
  const encryption = { ...key, use: 'enc' }
  for (const keys of [[], [key, encryption, {}]]) ok(await create({ issuerKeys: JSON.stringify({ keys }) }))
  for (const keys of [
    '',
    'not json',
    'null',
    '[]',
    '{}',
    '{"keys":{}}',
    '{"keys":[null]}',
    '{"keys":[{}]}',
    '{"keys":[{"kty":"RSA","n":"n","e":"AQAB"}]}',
    JSON.stringify({ keys: [encryption] }),
    JSON.stringify({ keys: [{ ...key, d: 'private' }] }),
    JSON.stringify({ keys: [key, { kty: 'oct', k: 'secret' }] }),
  ]) {
    assertInvalid(await create({ issuerKeys: keys }), 'static_keys.issuer_keys')
  }
})

test('static keys expire 365 days after the identity was created, or earlier', async () => {
  const staticKeys = { issuer: 'i', subject: 's', issuerKeys: publicKeys }
  const inDays = (days: number) => new Date(Date.now() + days * 24 * 3600 * 1000).toISOString()
  const create = (expirationTime: string) => {
    return owner.post(`${path}/${org.uid}`, { name: 'expiry', staticKeys: { ...staticKeys, expirationTime } })
  }
  const soon = inDays(30)
  const made = ok(await create(soon))
  assert.equal(made.staticKeys.expirationTime, soon)
  assertInvalid(await create(inDays(365.01)), 'static_keys.expiration_time')
  assertInvalid(await create('9999-12-31T23:59:59Z'), 'static_keys.expiration_time')

  const at = `${path}/${made.uid}?updateMask=staticKeys.expirationTime`
  assertInvalid(
    await owner.patch(at, { staticKeys: { expirationTime: inDays(365.01) } }),
    'static_keys.expiration_time',
  )
  const limit = new Date(Date.parse(made.createTime) + 365 * 24 * 3600 * 1000).toISOString()
  assert.equal(ok(await owner.patch(at, { staticKeys: { expirationTime: limit } })).staticKeys.expirationTime, limit)
  ok(await owner.patch(at, { staticKeys: { expirationTime: soon } }))
  assert.deepEqual(ok(await owner.patch(at, {})).staticKeys, { ...made.staticKeys, expirationTime: limit })
})

test('an AWS identity needs an account, and an ARN or a user id, exact or as a pattern', async () => {
  const create = (awsIdentity: Json) => owner.post(`${path}/${org.uid}`, { name: 'aws', awsIdentity })
  const [awsAccount, arn, userId] = ['123456789012', 'arn:aws:iam::123456789012:role/ci', 'AIDAEXAMPLE']
  for (const constraint of [
    { arn },
    { arnPattern: 'arn:.*' },
    { userId },
    { userIdPattern: 'AIDA.*' },
    { arn, userId },
  ]) {
    assert.deepEqual(ok(await create({ awsAccount, ...constraint })).awsIdentity, { awsAccount, ...constraint })
  }
  for (const account of ['', '12345678901', '1234567890123', '12345678901a']) {
    assertInvalid(await create({ awsAccount: account, arn }), 'aws_identity.aws_account')
  }
  assertInvalid(await create({ awsAccount }), 'aws_identity.arn')
  assertInvalid(await create({ awsAccount, arnPattern: '(?=x)' }), 'aws_identity.arn_pattern')
  assertInvalid(await create({ awsAccount, userIdPattern: '(' }), 'aws_identity.user_id_pattern')
  assertInvalid(await create({ awsAccount, arn, arnPattern: 'x' }), 'aws_identity.arn_pattern')
  assertInvalid(await create({ awsAccount, userId, userIdPattern: 'x' }), 'aws_identity.user_id_pattern')
})

test('a service principal must be one of the services in the contract', async () => {
  const create = (servicePrincipal: unknown) => owner.post(`${path}/${org.uid}`, { name: 'service', servicePrincipal })
  for (const spelling of ['SERVICE_PRINCIPAL_INGESTER', 2]) {
    assert.equal(ok(await create(spelling)).servicePrincipal, 'SERVICE_PRINCIPAL_INGESTER')
  }
  const all = ServicePrincipalSchema.values.map(({ name }) => name).slice(1)
  assert.deepEqual([all.length, all[0], all.at(-1)], [13, 'SERVICE_PRINCIPAL_COSIGNED', 'SERVICE_PRINCIPAL_SKILLS'])
  for (const [i, name] of all.entries()) {
    assert.equal(ok(await create(i + 1)).servicePrincipal, name)
    assert.equal(ok(await create(name)).servicePrincipal, name)
  }
  for (const wrong of [0, 14, 999, 'SERVICE_PRINCIPAL_NOBODY']) assertInvalid(await create(wrong), 'service_principal')
})

test('requires an existing group as the parent of an identity', async () => {
  const repo = await pinfold.seed.repo(org.uid)
  for (const parent of [`${org.uid}/0123456789abcdef`, repo.uid]) {
    const answer = await owner.post(`${path}/${parent}`, { name: 'lost', claimMatch })
    assertNotFound(answer, 'iam.pinfold.dev/Group', parent)
  }
  assertInvalid(await owner.post(`${path}/${org.uid}/0123456789abcdef`, { claimMatch }), 'name')
  assertInvalid(await owner.post(`${path}/not-a-uid`, { name: 'x', claimMatch }), 'parent')
  assertInvalid(await owner.post(`${path}/`, { name: 'x', claimMatch }), 'parent')
})

test('returns NOT_FOUND for an identity that does not exist', async () => {
  const uid = `${org.uid}/0123456789abcdef`
  assertNotFound(await owner.get(`${path}/${uid}`), type, uid)
  assertNotFound(await owner.patch(`${path}/${uid}`, { description: 'x' }), type, uid)
  assertNotFound(await owner.delete(`${path}/${uid}`), type, uid)
  assertNotFound(await owner.get(`${path}/${org.uid}`), type, org.uid)
  assertInvalid(await owner.get(`${path}/not-a-uid`), 'uid')
})

test('denies a caller without rights, whether or not the identity exists', async () => {
  const { uid } = await pinfold.seed.identity(org.uid)
  for (const at of [uid, `${org.uid}/0123456789abcdef`, missing]) {
    for (const client of [stranger, pinfold.anonymous]) {
      const answers = [
        await client.get(`${path}/${at}`),
        await client.patch(`${path}/${at}`, { name: 'NO' }),
        await client.delete(`${path}/${at}`),
        await client.post(`${path}/${at}`, { name: 'NO' }),
      ]
      for (const answer of answers) {
        if (client === stranger) assertDenied(answer)
        else assertError(answer, 401, 16, 'UNAUTHENTICATED')
      }
    }
  }
  assert.deepEqual(ok(await stranger.get(path)), { identities: [], nextPageToken: '', totalCount: '0', skipped: 0 })
})

test('each method requires its own capability', async () => {
  const target = await pinfold.seed.identity(org.uid)
  const calls: Record<string, (client: Client) => ReturnType<Client['get']>> = {
    'identity.list': (client) => client.get(`${path}/${target.uid}`),
    'identity.create': (client) => client.post(`${path}/${org.uid}`, { name: 'x', claimMatch }),
    'identity.update': (client) => client.patch(`${path}/${target.uid}`, { description: 'x' }),
    'identity.delete': (client) => client.delete(`${path}/${target.uid}`),
  }
  for (const held of Object.keys(calls)) {
    const role = await pinfold.seed.role(org.uid, [held])
    const client = await pinfold.as((await pinfold.seed.member(org.uid, role.uid)).uid)
    for (const [needed, call] of Object.entries(calls)) {
      if (needed !== held) assertDenied(await call(client))
      else ok(await call(client))
    }
  }
})

test('an identity in a folder has no access above the folder', async () => {
  const folder = await pinfold.seed.group(org.uid)
  const client = await pinfold.as((await pinfold.seed.member(folder.uid, roleUids.owner)).uid)
  ok(await client.get(`/iam/v2/groups/${folder.uid}`))
  assertDenied(await client.get(`/iam/v2/groups/${org.uid}`))
  assertDenied(await client.get(`/registry/v2/repos?uidp.children_of=${org.uid}`))
})

test('filters the list by name and by kind of relationship', async () => {
  const group = await pinfold.seed.group(org.uid)
  const keys = { issuer: 'i', subject: 's', issuerKeys: publicKeys }
  const relationships: Record<string, Json> = {
    RELATIONSHIP_TYPE_CLAIM_MATCH: { claimMatch },
    RELATIONSHIP_TYPE_STATIC: { claimMatch: undefined, staticKeys: keys },
    RELATIONSHIP_TYPE_AWS_IDENTITY: { claimMatch: undefined, awsIdentity: { awsAccount: '123456789012', arn: 'a' } },
    RELATIONSHIP_TYPE_SERVICE_PRINCIPAL: { claimMatch: undefined, servicePrincipal: 2 },
  }
  const below = `${path}?uidp.children_of=${group.uid}`
  const made: Json[] = []
  for (const body of Object.values(relationships)) made.push(await pinfold.seed.identity(group.uid, body))

  for (const [i, kind] of Object.keys(relationships).entries()) {
    const listed = ok(await owner.get(`${below}&relationship_type=${kind}`))
    assert.deepEqual(listed, { identities: [made[i]], nextPageToken: '', totalCount: '1', skipped: 0 })
  }
  assert.equal(ok(await owner.get(below)).totalCount, '4')
  assert.deepEqual(ok(await owner.get(`${below}&name=${made[1]!.name}`)).identities, [made[1]])
  assertInvalid(await owner.get(`${below}&relationship_type=NONSENSE`), 'relationship_type')
})

test('an update changes the named fields, also inside the relationship', async () => {
  const made = await pinfold.seed.identity(org.uid, { claimMatch: { ...claimMatch, audience: 'old' } })
  const at = `${path}/${made.uid}`
  const named = ok(await owner.patch(at, { name: 'renamed', description: 'new', company: 'Acme' }))
  const expected = { ...made, name: 'renamed', description: 'new', company: 'Acme' }
  assert.deepEqual(named, { ...expected, updateTime: named.updateTime })

  const nested = ok(
    await owner.patch(`${at}?updateMask=claimMatch.subject`, { claimMatch: { subject: 'new', issuer: 'x' } }),
  )
  assert.deepEqual(nested.claimMatch, { ...made.claimMatch, subject: 'new' })
  const cleared = ok(await owner.patch(`${at}?updateMask=claim_match.audience`, {}))
  assert.equal('audience' in cleared.claimMatch, false)
  const claims = ok(
    await owner.patch(`${at}?updateMask=claimMatch.claims`, { claimMatch: { claims: { ref: 'main' } } }),
  )
  assert.deepEqual(claims.claimMatch.claims, { ref: 'main' })
  assert.deepEqual(ok(await owner.patch(`${at}?updateMask=claimMatch.claims`, {})).claimMatch.claims, {})
  const whole = ok(await owner.patch(at, { claimMatch: { issuer: 'https://a.example', subject: 's' } }))
  assert.deepEqual(whole.claimMatch, { issuer: 'https://a.example', subject: 's', claims: {}, claimPatterns: {} })
  assert.deepEqual(ok(await owner.get(at)), whole)
})

test('setting a pattern removes the exact value, and setting the exact value removes the pattern', async () => {
  const made = await pinfold.seed.identity(org.uid, { claimMatch: { ...claimMatch, audience: 'a' } })
  const at = (mask: string) => `${path}/${made.uid}?updateMask=${mask}`
  const patterns = { issuerPattern: 'https://.*', subjectPattern: 's.*', audiencePattern: 'a|b' }
  const mask = 'claimMatch.issuerPattern,claimMatch.subjectPattern,claimMatch.audiencePattern'
  const inPatterns = ok(await owner.patch(at(mask), { claimMatch: patterns }))
  assert.deepEqual(inPatterns.claimMatch, { ...patterns, claims: {}, claimPatterns: {} })
  const exact = ok(
    await owner.patch(at('claimMatch.subject,claimMatch.subjectPattern'), { claimMatch: { subject: 's' } }),
  )
  assert.equal(exact.claimMatch.subject, 's')
  assert.equal('subjectPattern' in exact.claimMatch, false)

  const aws = await pinfold.seed.identity(org.uid, {
    claimMatch: undefined,
    awsIdentity: { awsAccount: '123456789012', arn: 'arn', userId: 'id' },
  })
  const both = await owner.patch(`${path}/${aws.uid}?updateMask=awsIdentity.arnPattern,awsIdentity.userIdPattern`, {
    awsIdentity: { arnPattern: 'arn.*', userIdPattern: 'id.*' },
  })
  assert.deepEqual(ok(both).awsIdentity, { awsAccount: '123456789012', arnPattern: 'arn.*', userIdPattern: 'id.*' })
})

test('validates an update like a creation', async () => {
  const made = await pinfold.seed.identity(org.uid)
  const at = `${path}/${made.uid}`
  assertInvalid(await owner.patch(at, { name: 'NO' }), 'name')
  assertInvalid(await owner.patch(at, { description: 'a\tb' }), 'description')
  assertInvalid(await owner.patch(at, { claimMatch: { issuer: 'https://a.example' } }), 'claim_match.subject')
  assertInvalid(await owner.patch(`${at}?updateMask=claimMatch.subject`, {}), 'claim_match.subject')
  assertInvalid(await owner.patch(`${at}?updateMask=claimMatch`, {}), 'relationship')
  assertInvalid(await owner.patch(`${at}?updateMask=claimMatch.nonsense`, {}), 'update_mask')
  const pattern = { claimMatch: { subjectPattern: '(?=x)' } }
  assertInvalid(await owner.patch(`${at}?updateMask=claimMatch.subjectPattern`, pattern), 'claim_match.subject_pattern')
  assert.deepEqual(ok(await owner.get(at)), made)
})

test('refuses an update of the kind of relationship', async () => {
  const made = await pinfold.seed.identity(org.uid)
  const at = `${path}/${made.uid}`
  const awsIdentity = { awsAccount: '123456789012', arn: 'arn' }
  const refused = [
    await owner.patch(at, { awsIdentity }),
    await owner.patch(`${at}?updateMask=*`, { name: 'x', awsIdentity }),
    await owner.patch(`${at}?updateMask=claimMatch,awsIdentity`, { awsIdentity }),
    await owner.patch(`${at}?updateMask=awsIdentity.awsAccount`, { awsIdentity }),
    await owner.patch(at, { servicePrincipal: 2 }),
  ]
  for (const answer of refused) {
    assertInvalid(answer, 'relationship')
    assert.match(answer.body.message, /cannot be replaced by another kind/)
  }
  assert.deepEqual(ok(await owner.get(at)), made)

  // Clearing a relationship that is not set changes nothing.
  const same = ok(await owner.patch(`${at}?updateMask=staticKeys,description`, { description: 'x' }))
  assert.deepEqual(same, { ...made, description: 'x', updateTime: same.updateTime })
})

test('changing the rules of an identity requires all rights that its bindings give', async () => {
  const role = await pinfold.seed.role(org.uid, ['identity.list', 'identity.update', 'groups.list'])
  const editor = await pinfold.as((await pinfold.seed.member(org.uid, role.uid)).uid)
  const folder = await pinfold.seed.group(org.uid)
  const target = await pinfold.seed.identity(org.uid)
  const at = `${path}/${target.uid}`
  const takeOver = { claimMatch: { ...claimMatch, subject: 'me' } }

  const binding = await pinfold.seed.binding(folder.uid, target.uid, roleUids.viewer)
  assertDenied(await editor.patch(at, takeOver))
  assertDenied(await editor.patch(`${at}?updateMask=claimMatch.subject`, takeOver))
  assertDenied(await editor.patch(`${at}?updateMask=claimMatch.audience`, { claimMatch: { audience: 'mine' } }))
  // Repeating the relationship, or changing other fields, gives nobody access to the rights of the identity.
  ok(await editor.patch(at, { name: 'renamed', claimMatch: target.claimMatch }))
  ok(await owner.patch(at, takeOver))

  ok(await owner.delete(`/iam/v2/roleBindings/${binding.uid}`))
  ok(await editor.patch(at, { claimMatch: { ...claimMatch, subject: 'unbound' } }))
  const weak = await pinfold.seed.role(org.uid, ['groups.list'])
  await pinfold.seed.binding(folder.uid, target.uid, weak.uid)
  ok(await editor.patch(at, { claimMatch: { ...claimMatch, subject: 'weaker' } }))

  await pinfold.seed.binding(org.uid, target.uid, roleUids.operator)
  assertDenied(await owner.patch(at, takeOver))
  ok(await pinfold.operator.patch(at, takeOver))
})

test('deleting an identity deletes its bindings, and its tokens lose all access', async () => {
  const folder = await pinfold.seed.group(org.uid)
  const identity = await pinfold.seed.member(org.uid, roleUids.viewer)
  await pinfold.seed.binding(folder.uid, identity.uid, roleUids.editor)
  const client = await pinfold.as(identity.uid)
  ok(await client.get(`/iam/v2/groups/${org.uid}`))

  const answer = await owner.delete(`${path}/${identity.uid}`)
  assert.equal(answer.status, 200)
  assert.equal(answer.text, '')
  assertError(await client.get(`/iam/v2/groups/${org.uid}`), 401, 16, 'UNAUTHENTICATED')
  assert.deepEqual(ok(await owner.get(`/iam/v2/roleBindings?identity=${identity.uid}`)).roleBindings, [])
  assertNotFound(await owner.get(`${path}/${identity.uid}`), type, identity.uid)
  assertNotFound(await owner.delete(`${path}/${identity.uid}`), type, identity.uid)
})

test('refuses to delete the last owner of an organization', async () => {
  const root = await pinfold.seed.group()
  const first = await pinfold.seed.member(root.uid, roleUids.owner)
  const viewer = (await pinfold.seed.binding(root.uid, first.uid, roleUids.viewer)).uid
  assertBlocked(await pinfold.operator.delete(`${path}/${first.uid}`), root.uid, 'LAST_OWNER')
  ok(await pinfold.operator.get(`${path}/${first.uid}`))
  ok(await pinfold.operator.get(`/iam/v2/roleBindings/${viewer}`))

  const second = await pinfold.seed.member(root.uid, roleUids.owner)
  ok(await pinfold.operator.delete(`${path}/${first.uid}`))
  assertBlocked(await pinfold.operator.delete(`${path}/${second.uid}`), root.uid, 'LAST_OWNER')
})

test('each change writes one event, and a failed request writes none', async () => {
  const base = { audience: 'CUSTOMER', actor: operatorUid, group: org.uid }
  const { operator } = pinfold
  let made: Json = {}
  const created = await eventsOf(pinfold, async () => {
    made = ok(
      await operator.post(`${path}/${org.uid}`, { name: 'events', claimMatch: { ...claimMatch, claims: { a: 'b' } } }),
    )
  })
  const about = { ...base, subject: made.uid, bodyType: 'pinfold.platform.iam.v2.Identity' }
  assert.deepEqual(created, [{ ...about, type: 'dev.pinfold.api.iam.identity.created.v1', body: snake(made) }])

  let changed: Json = {}
  const updated = await eventsOf(pinfold, async () => {
    changed = ok(await operator.patch(`${path}/${made.uid}`, { description: 'new' }))
  })
  assert.deepEqual(updated, [{ ...about, type: 'dev.pinfold.api.iam.identity.updated.v1', body: snake(changed) }])

  const failed = await eventsOf(pinfold, async () => {
    assertInvalid(await operator.post(`${path}/${org.uid}`, {}), 'name', 'relationship')
    assertInvalid(await operator.patch(`${path}/${made.uid}`, { name: 'NO' }), 'name')
    assertDenied(await stranger.delete(`${path}/${made.uid}`))
    assertNotFound(await operator.delete(`${path}/${missing}`), type, missing)
  })
  assert.deepEqual(failed, [])

  const folder = await pinfold.seed.group(org.uid)
  const binding = await pinfold.seed.binding(folder.uid, made.uid, roleUids.viewer)
  const own = await pinfold.as((await pinfold.seed.member(org.uid, roleUids.owner)).uid)
  const deleted = await eventsOf(pinfold, async () => ok(await own.delete(`${path}/${made.uid}`)))
  const actor = claimsOf(own.token!).sub
  const unbound = { ...base, actor, group: folder.uid, subject: binding.uid, body: { uid: binding.uid } }
  const request = {
    ...about,
    actor,
    bodyType: 'pinfold.platform.iam.v2.DeleteIdentityRequest',
    body: { uid: made.uid },
  }
  assert.deepEqual(deleted, [
    {
      ...unbound,
      bodyType: 'pinfold.platform.iam.v2.DeleteRoleBindingRequest',
      type: 'dev.pinfold.api.iam.rolebindings.deleted.v1',
    },
    { ...request, type: 'dev.pinfold.api.iam.identity.deleted.v1' },
  ])
})
