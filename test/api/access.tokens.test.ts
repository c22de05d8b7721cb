import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import {
  type CryptoKey,
  createRemoteJWKSet,
  exportSPKI,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTPayload,
  jwtVerify,
  SignJWT,
} from 'jose'
import { startServer } from '#api/server.ts'
import { sql } from '#db/sql.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { rotateKeys } from '#domains/iam/iam.job.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { openKeyring } from '#issuer/keyring.ts'
import { createSecretCipher } from '#lib/crypto/secret-cipher.ts'
import { createApp } from '../../src/create-app.ts'
import { runJob } from '../support/background-jobs.ts'
import { type Answer, clientOf, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { freePort } from '../support/ports.ts'
import { openGrpc } from '../support/raw-grpc.ts'

const [groupsList, repoList, repoUpdate] = ['groups.list', 'repo.list', 'repo.update'].map(capabilityNumber) as [
  number,
  number,
  number,
]
const hour = 60 * 60 * 1000
const day = 24 * hour

let pinfold: Pinfold
let org: Json
let team: Json
let project: Json
let repos: { org: Json; team: Json; project: Json }
let owner: Json
let ownerToken: string

before(async () => {
  pinfold = await startPinfold()
  const { seed } = pinfold
  org = await seed.group()
  team = await seed.group(org.uid)
  project = await seed.group(team.uid)
  repos = { org: await seed.repo(org.uid), team: await seed.repo(team.uid), project: await seed.repo(project.uid) }
  owner = await seed.member(org.uid, roleUids.owner)
  ownerToken = await pinfold.tokenFor(owner.uid)
})

after(() => pinfold[Symbol.asyncDispose]())

const withHeader = (authorization: string) =>
  clientOf(pinfold.url, undefined).call('GET', '/iam/v2/groups', undefined, { authorization })

function assertUnauthenticated(answer: Answer, context: string): void {
  assert.equal(answer.status, 401, `${context}: ${answer.text}`)
  assert.equal(answer.body.code, 16, context)
  assert.equal(answer.headers.get('www-authenticate'), 'Bearer', context)
  const [info, ...more] = answer.body.details
  assert.equal(info.reason, 'UNAUTHENTICATED', context)
  assert.deepEqual(more, [], context)
}

test('accepts an Authorization header only as the word Bearer, in any case, followed by one token', async () => {
  for (const header of [`Bearer ${ownerToken}`, `bearer ${ownerToken}`, `BEARER   ${ownerToken}`]) {
    assert.equal((await withHeader(header)).status, 200, header.slice(0, 9))
  }
  const wrong = ['', 'Bearer', 'Bearer ', ownerToken, `Basic ${ownerToken}`, `Token ${ownerToken}`]
  wrong.push(`Bearer ${ownerToken} ${ownerToken}`, `Bearer${ownerToken}`, `Bearer ${ownerToken},Bearer ${ownerToken}`)
  wrong.push(`Bearer "${ownerToken}"`, `Bearer token=${ownerToken}`)
  for (const header of wrong) assertUnauthenticated(await withHeader(header), header.slice(0, 20))
  assertUnauthenticated(await pinfold.anonymous.get('/iam/v2/groups'), 'none')
})

test('ignores a token in the query or in a cookie', async () => {
  const { anonymous } = pinfold
  const cookie = { cookie: `access_token=${ownerToken}` }
  assertUnauthenticated(await anonymous.call('GET', '/iam/v2/groups', undefined, cookie), 'cookie')
  assertUnauthenticated(await anonymous.get(`/iam/v2/groups?access_token=${ownerToken}`), 'query')
})

const part = (value: object | string) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** Tokens that a foreign key signed. */
async function forgeries(): Promise<Record<string, string>> {
  const { kid } = pinfold.app.keyring.signer()
  const [header, payload, signature] = ownerToken.split('.') as [string, string, string]
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as JWTPayload
  const [jwk] = pinfold.app.keyring.jwks().keys as [JWK]
  const publicPem = await exportSPKI((await importJWK({ ...jwk, ext: true }, 'ES256')) as CryptoKey)
  const theirs = await generateKeyPair('ES256', { extractable: true })
  const rsa = await generateKeyPair('RS256')
  const typ = 'at+jwt'
  const sign = (protectedHeader: { alg: string } & Json, key: CryptoKey | Uint8Array) =>
    new SignJWT(claims).setProtectedHeader({ typ, kid, ...protectedHeader }).sign(key)
  const bytes = (text: string) => new TextEncoder().encode(text)
  const flipped = Buffer.from(signature, 'base64url')
  flipped[10]! ^= 1
  return {
    'alg none': `${part({ alg: 'none', typ, kid })}.${payload}.`,
    'alg none with a signature': `${part({ alg: 'none', typ, kid })}.${payload}.${signature}`,
    'alg None': `${part({ alg: 'None', typ, kid })}.${payload}.`,
    'HS256 with the public key as PEM': await sign({ alg: 'HS256' }, bytes(publicPem)),
    'HS256 with the public key as JWK': await sign({ alg: 'HS256' }, bytes(JSON.stringify(jwk))),
    'RS256 with our kid': await sign({ alg: 'RS256' }, rsa.privateKey),
    'their key with our kid': await sign({ alg: 'ES256' }, theirs.privateKey),
    'their key with their kid': await sign({ alg: 'ES256', kid: 'theirs' }, theirs.privateKey),
    'their key in the header': await sign(
      { alg: 'ES256', jwk: { kty: 'EC', crv: 'P-256', x: jwk.x, y: jwk.y } },
      theirs.privateKey,
    ),
    'our key without a kid': await sign({ alg: 'ES256', kid: undefined }, pinfold.app.keyring.signer().key),
    'kid of a prototype': await sign({ alg: 'ES256', kid: '__proto__' }, theirs.privateKey),
    'critical extension': `${part({ alg: 'ES256', typ, kid, crit: ['x'], x: 1 })}.${payload}.${signature}`,
    'another subject': `${header}.${part({ ...claims, sub: operatorUid })}.${signature}`,
    'another signature': `${header}.${payload}.${flipped.toString('base64url')}`,
    'no signature': `${header}.${payload}.`,
    'two parts': `${header}.${payload}`,
    'five parts': `${header}.${payload}.${signature}.${payload}.${signature}`,
    'not base64': `${header}.${payload}.***`,
    'not JSON': `${part('{')}.${payload}.${signature}`,
    'JSON that is no object': `${part('7')}.${part('[]')}.${signature}`,
    'one word': 'letmein',
    dots: '..',
  }
}

test('each kind of forged token gets the same error message', async () => {
  const messages = new Set<string>()
  for (const [name, token] of Object.entries(await forgeries())) {
    const answer = await withHeader(`Bearer ${token}`)
    assertUnauthenticated(answer, name)
    messages.add(answer.body.message)
  }
  assert.deepEqual([...messages], ['the token was not issued by this server; sign in again'])
})

test('gRPC and REST give the same error for a missing and for a forged token', async () => {
  using grpc = openGrpc(pinfold.port)
  const request = create(GroupsService.method.listGroups.input)
  const tokens = [undefined, ...Object.values(await forgeries()), `${ownerToken}${'x'.repeat(17_000)}`]
  for (const token of tokens) {
    const { code, details } = await grpc.call(GroupsService.method.listGroups, request, { token })
    assert.equal(code, 16, String(token).slice(0, 40))
    assert.equal(details[0]!.reason, 'UNAUTHENTICATED')
    assert.equal(details.length, 1)
  }
  assert.equal((await grpc.call(GroupsService.method.listGroups, request, { token: ownerToken })).code, 0)
})

/** A token with changed claims, signed by our own key. */
function signOurs(claims: Json, header: Json = {}): Promise<string> {
  const { kid, key } = pinfold.app.keyring.signer()
  const now = Math.floor(Date.now() / 1000)
  const standard = { iss: pinfold.url, aud: pinfold.url, sub: owner.uid, iat: now, exp: now + 600 }
  return new SignJWT({ ...standard, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid, typ: 'at+jwt', ...header })
    .sign(key)
}

test('refuses a token of this server that is for another audience, expired or not yet valid', async () => {
  const now = Math.floor(Date.now() / 1000)
  const wrong: Record<string, string> = {
    'audience of the registry': await signOurs({ aud: new URL(pinfold.url).host }),
    'audience with a slash': await signOurs({ aud: `${pinfold.url}/` }),
    'no audience': await signOurs({ aud: undefined }),
    'another issuer': await signOurs({ iss: 'https://issuer.example.com' }),
    expired: await signOurs({ iat: now - 100, exp: now - 1 }),
    'without expiry': await signOurs({ exp: undefined }),
    'not yet valid': await signOurs({ nbf: now + 100 }),
    'an id token': await signOurs({}, { typ: 'JWT' }),
    'a subject that is no uid': await signOurs({ sub: 'owner' }),
    'no subject': await signOurs({ sub: undefined }),
  }
  for (const [name, token] of Object.entries(wrong)) assertUnauthenticated(await withHeader(`Bearer ${token}`), name)
  assert.equal((await withHeader(`Bearer ${await signOurs({ aud: ['customer', pinfold.url] })}`)).status, 200)
})

test('accepts a token of an identity without bindings, and shows it no resources', async () => {
  const nobody = await pinfold.as((await pinfold.seed.person()).uid)
  assert.equal((await nobody.get('/iam/v2/groups')).body.totalCount, '0')
  assert.equal((await nobody.get(`/iam/v2/groups/${org.uid}`)).status, 403)
})

/** Repositories that the caller can read, and repositories in the list of the caller. Both must be equal. */
async function reach(token: string): Promise<{ reads: string[]; lists: string[] }> {
  const client = pinfold.withToken(token)
  const named = Object.entries(repos)
  const statuses = await Promise.all(named.map(([, { uid }]) => client.get(`/registry/v2/repos/${uid}`)))
  for (const { status } of statuses) assert.ok(status === 200 || status === 403, String(status))
  const listed = await client.get('/registry/v2/repos')
  const uids = ((listed.body.repos ?? []) as Json[]).map(({ uid }) => uid)
  assert.equal(listed.body.totalCount, String(uids.length))
  return {
    reads: named.filter((_, i) => statuses[i]!.status === 200).map(([name]) => name),
    lists: named.filter(([, { uid }]) => uids.includes(uid)).map(([name]) => name),
  }
}

const same = (...names: string[]) => ({ reads: names, lists: names })

test('a cap claim limits a token to the groups and capabilities in the claim', async () => {
  const { tokenFor } = pinfold
  const narrowed = (cap: Record<string, number[]>) => tokenFor(owner.uid, { cap })
  assert.deepEqual(await reach(ownerToken), same('org', 'team', 'project'))
  assert.deepEqual(await reach(await narrowed({ [org.uid]: [repoList] })), same('org', 'team', 'project'))
  assert.deepEqual(await reach(await narrowed({ '/': [repoList] })), same('org', 'team', 'project'))
  assert.deepEqual(await reach(await narrowed({ [team.uid]: [repoList] })), same('team', 'project'))
  assert.deepEqual(await reach(await narrowed({ [project.uid]: [repoList] })), same('project'))
  assert.deepEqual(await reach(await narrowed({ [org.uid]: [groupsList] })), same())
  assert.deepEqual(
    await reach(await narrowed({ [org.uid]: [groupsList], [team.uid]: [repoList] })),
    same('team', 'project'),
  )
  assert.deepEqual(await reach(await narrowed({})), same())

  const reader = await pinfold.as(owner.uid, { cap: { [org.uid]: [repoList] } })
  const path = `/registry/v2/repos/${repos.team.uid}`
  assert.equal((await reader.patch(path, { description: 'new' })).status, 403)
  assert.equal((await reader.get(`/iam/v2/groups/${org.uid}`)).status, 403)
  const writer = await pinfold.as(owner.uid, { cap: { [team.uid]: [repoUpdate] } })
  assert.equal((await writer.patch(path, { description: 'new' })).status, 200)
  assert.equal((await writer.patch(`/registry/v2/repos/${repos.org.uid}`, { description: 'new' })).status, 403)
})

test('a cap claim for a group above the binding, or without a binding, grants nothing', async () => {
  const member = await pinfold.seed.identity(org.uid)
  await pinfold.seed.binding(team.uid, member.uid, roleUids.viewer)
  const other = await pinfold.seed.group()
  const narrowed = (cap: Record<string, number[]>) => pinfold.tokenFor(member.uid, { cap })
  assert.deepEqual(await reach(await narrowed({ [org.uid]: [repoList] })), same('team', 'project'))
  assert.deepEqual(await reach(await narrowed({ '/': [repoList, repoUpdate] })), same('team', 'project'))
  assert.deepEqual(await reach(await narrowed({ [other.uid]: [repoList] })), same())
  const writer = await pinfold.as(member.uid, { cap: { [org.uid]: [repoUpdate] } })
  assert.equal((await writer.patch(`/registry/v2/repos/${repos.team.uid}`, {})).status, 403)
})

test("the operator's token can be narrowed as well", async () => {
  const cap = { [team.uid]: [repoList] }
  assert.deepEqual(await reach(await pinfold.tokenFor(operatorUid, { cap })), same('team', 'project'))
  const narrow = await pinfold.as(operatorUid, { cap })
  assert.equal((await narrow.post('/iam/v2/groups/', { name: 'new-organization' })).status, 403)
})

test('a token with an unreadable cap claim grants nothing', async () => {
  const list = 'AAAAAAAAADsEAAAAAAAACA=='
  assert.deepEqual(await reach(await signOurs({ cap: { [org.uid]: list } })), same('org', 'team', 'project'))
  for (const cap of [null, 'everything', [], {}, { [org.uid]: 'AAAA' }, { [org.uid]: [1605] }, { '*': list }]) {
    assert.deepEqual(await reach(await signOurs({ cap })), same(), JSON.stringify(cap))
  }
})

test('the discovery document has the exact issuer, and its keys verify tokens of this server', async () => {
  const { body, headers } = await pinfold.anonymous.get('/.well-known/openid-configuration')
  assert.match(headers.get('content-type')!, /^application\/json/)
  assert.equal(body.issuer, pinfold.url)
  for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri']) {
    assert.ok(body[name].startsWith(`${pinfold.url}/`), name)
  }
  assert.deepEqual(body.response_types_supported, ['code'])
  assert.deepEqual(body.subject_types_supported, ['public'])
  assert.deepEqual(body.id_token_signing_alg_values_supported, ['ES256'])

  const keys = createRemoteJWKSet(new URL(body.jwks_uri))
  const { payload } = await jwtVerify(ownerToken, keys, { issuer: body.issuer, audience: pinfold.url })
  assert.equal(payload.sub, owner.uid)
})

test('the key set contains only public keys', async () => {
  const { body } = await pinfold.anonymous.get('/.well-known/jwks.json')
  assert.equal(body.keys.length, 1)
  for (const key of body.keys as Json[]) {
    const { kid, x, y, ...rest } = key
    assert.deepEqual(rest, { kty: 'EC', crv: 'P-256', use: 'sig', alg: 'ES256' })
    assert.equal(kid, pinfold.app.keyring.signer().kid)
    for (const coordinate of [x, y]) assert.equal(Buffer.from(coordinate, 'base64url').length, 32)
  }
})

test('behind a proxy, the configured public URL is the issuer and the audience', async () => {
  const url = 'https://pinfold.example.com'
  const listen = { host: '127.0.0.1', port: await freePort() }
  const server = await startServer({ ...pinfold.app, config: { ...pinfold.app.config, url, listen } })
  try {
    assert.equal(server.url, url)
    const clientFor = (token: string | undefined) => clientOf(`http://127.0.0.1:${listen.port}`, token)
    const { body } = await clientFor(undefined).get('/.well-known/openid-configuration')
    assert.equal(body.issuer, url)
    assert.equal(body.jwks_uri, `${url}/.well-known/jwks.json`)
    const token = await pinfold.tokenFor(owner.uid, { issuer: url, audience: url })
    assert.equal((await clientFor(token).get('/iam/v2/groups')).status, 200)
    assertUnauthenticated(await clientFor(ownerToken).get('/iam/v2/groups'), 'token of another URL')
  } finally {
    await server.close()
  }
})

test('stores signing keys encrypted with the master key', async () => {
  const { db, cipher } = pinfold.app
  const rows = await db.all<{ sealed: Uint8Array }>(sql`SELECT private_jwk AS sealed FROM signing_keys`)
  assert.equal(rows.length, 1)
  const sealed = Buffer.from(rows[0]!.sealed)
  const jwk = JSON.parse(cipher.decrypt('signing-key', sealed)!.toString()) as JWK
  for (const secret of [jwk.d!, Buffer.from(jwk.d!, 'base64url'), '"kty"', '"d"']) {
    assert.equal(sealed.indexOf(secret), -1, String(secret))
  }
  assert.equal(cipher.decrypt('page-token', sealed), undefined)

  const stranger = createSecretCipher(randomBytes(32))
  assert.equal(stranger.decrypt('signing-key', sealed), undefined)
  await assert.rejects(openKeyring(db, stranger, Date.now, { days: 90, algorithms: ['ES256'] }), /another master key/)
})

test('publishes a new signing key a day before its first use, and accepts the old key for two days after', async () => {
  const start = Date.parse('2026-08-01T12:00:00.000Z')
  let now = start
  await using rotating = await startPinfold({ clock: () => new Date(now), keyRotationDays: 30 })
  const { app, tokenFor } = rotating
  const published = async () => {
    const { body } = await rotating.anonymous.get('/.well-known/jwks.json')
    return (body.keys as Json[]).map(({ kid }) => kid as string)
  }
  const at = async (time: number) => {
    now = time
    await runJob(app, rotateKeys)
  }
  const accepted = async (token: string) => {
    const { status } = await rotating.withToken(token).get('/iam/v2/groups')
    assert.ok(status === 200 || status === 401, String(status))
    return status === 200
  }
  const [first] = await published()
  const { kid, key: oldKey } = app.keyring.signer()
  assert.equal(kid, first)
  // No token lives this long. This one shows how long the key itself is valid.
  const lasting = await new SignJWT({})
    .setProtectedHeader({ alg: 'ES256', kid, typ: 'at+jwt' })
    .setIssuer(rotating.url)
    .setAudience(rotating.url)
    .setSubject(operatorUid)
    .setIssuedAt(start / 1000)
    .setExpirationTime((start + 90 * day) / 1000)
    .sign(oldKey)

  await at(start + 29 * day - 1)
  assert.deepEqual(await published(), [first])

  await at(start + 29 * day)
  const [, second] = await published()
  assert.deepEqual(await published(), [first, second])
  assert.notEqual(second, first)
  assert.equal(app.keyring.signer().kid, first)

  await at(start + 30 * day - 1)
  assert.equal(app.keyring.signer().kid, first)
  const last = await tokenFor(operatorUid)

  now = start + 30 * day
  assert.equal(app.keyring.signer().kid, second)
  assert.equal(await accepted(last), true)
  assert.equal(await accepted(await tokenFor(operatorUid)), true)

  await at(start + 32 * day - 1)
  assert.deepEqual(await published(), [first, second])
  assert.equal(await accepted(lasting), true)

  await at(start + 32 * day)
  assert.deepEqual(await published(), [second])
  assert.equal(await accepted(lasting), false)
  assert.equal(await accepted(await tokenFor(operatorUid)), true)
})

test('a server that was off for a year still publishes a new signing key a day before its first use', async () => {
  const start = Date.parse('2026-08-01T12:00:00.000Z')
  let now = start
  await using pinfold = await startPinfold({ clock: () => new Date(now), keyRotationDays: 30 })
  const { keyring } = pinfold.app
  const { kid } = keyring.signer()
  now += 365 * day
  await runJob(pinfold.app, rotateKeys)
  assert.equal(keyring.jwks().keys.length, 2)
  assert.equal(keyring.signer().kid, kid)
  now += day
  assert.notEqual(keyring.signer().kid, kid)
})

test('two servers of one database sign with the same keys, also if both have to create a new key', async () => {
  const start = Date.parse('2026-08-01T12:00:00.000Z')
  let now = start
  const clock = () => new Date(now)
  await using one = await startPinfold({ clock, keyRotationDays: 30 })
  const two = await createApp(one.app.config, clock)
  try {
    // The call needs no lease, because the transaction protects the keys.
    const rotate = ({ keyring, db }: typeof two) => keyring.rotate((work, options) => db.tx(work, options))
    const kids = ({ keyring }: { keyring: typeof two.keyring }) => keyring.jwks().keys.map(({ kid }) => kid)
    assert.deepEqual(kids(two), kids(one.app))
    assert.ok(two.keyring.verifier(one.app.keyring.signer().kid, 'ES256'))

    now = start + 29 * day
    await Promise.all([rotate(one.app as typeof two), rotate(two)])
    await Promise.all([one.app.keyring.refresh(), two.keyring.refresh()])
    assert.equal(kids(one.app).length, 2)
    assert.deepEqual(kids(two), kids(one.app))
    now = start + 30 * day
    assert.equal(two.keyring.signer().kid, one.app.keyring.signer().kid)

    await one.app.db.tx((tx) => tx.run(sql`DELETE FROM signing_keys`))
    await Promise.all([rotate(one.app as typeof two), rotate(two)])
    await Promise.all([one.app.keyring.refresh(), two.keyring.refresh()])
    assert.equal(kids(one.app).length, 1)
    assert.deepEqual(kids(two), kids(one.app))
  } finally {
    await two.close()
  }
})
