// The exchange for a caller: its parameters over every transport, the resulting token, and the rights of that token.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { sql } from '#db/sql.ts'
import { WhoAmISchema } from '#gen/pinfold/auth/v1/auth_pb.ts'
import { SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { claimsOf, type Scene, searchOf, startExchange, subject } from '../support/exchange.ts'
import { assertDenied, assertError, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { type Answer, type Json, roleUids } from '../support/pinfold.ts'
import { openGrpc } from '../support/raw-grpc.ts'

let scene: Scene
let uid: string
let token: string
let url: string
let host: string

before(async () => {
  scene = await startExchange()
  url = scene.pinfold.url
  host = new URL(url).host
  uid = (await scene.identity()).uid
  await scene.pinfold.seed.binding(scene.org.uid, uid, roleUids.viewer)
  token = await scene.token()
})

after(() => scene[Symbol.asyncDispose]())

const form = { 'content-type': 'application/x-www-form-urlencoded' }

function assertUnauthenticated(
  answer: Answer,
  message = 'the token is not accepted; check its issuer, audience, signature and expiry',
): void {
  assertError(answer, 401, 16, 'UNAUTHENTICATED')
  assert.equal(answer.body.message, message)
  assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
}

test("a job's token becomes a viewer's token, which may read, not write, and nothing after its binding is gone", async () => {
  const { pinfold, org } = scene
  const identity = await scene.identity()
  const binding = await pinfold.seed.binding(org.uid, identity.uid, roleUids.viewer)
  const res = ok(await scene.exchange(token, { identity: identity.uid }))
  assert.equal(res.refreshToken, '')

  const viewer = pinfold.withToken(res.token)
  assert.equal((await viewer.get('/registry/v2/repos')).status, 200)
  assertDenied(await viewer.post(`/registry/v2/repos/${org.uid}`, { name: 'web' }))
  const me = ok(await viewer.get('/auth/v1/ok'))
  assert.equal(me.subject, identity.uid)
  assert.deepEqual(
    me.capabilities.map((one: Json) => [one.group.id, one.role.name]),
    [[org.uid, 'viewer']],
  )
  ok(await pinfold.operator.delete(`/iam/v2/roleBindings/${binding.uid}`))
  assertDenied(await viewer.get(`/registry/v2/repos?uidp.descendants_of=${org.uid}`))
})

test('accepts parameters in the query or in a form, by GET or POST, with the same result', async () => {
  const { pinfold, org } = scene
  const client = pinfold.withToken(token)
  const query = searchOf({ aud: url, identity: uid, scopes: org.uid, cap: ['repo.list', 'groups.list'] })
  const half = [
    searchOf({ aud: url, cap: 'repo.list' }),
    searchOf({ identity: uid, scopes: org.uid, cap: 'groups.list' }),
  ]
  const answers = [
    await client.call('GET', `/sts/exchange?${query}`),
    await client.call('POST', `/sts/exchange?${query}`),
    await client.call('POST', '/sts/exchange', query.toString(), form),
    await client.call('POST', `/sts/exchange?${half[0]}`, half[1]!.toString(), form),
    await client.call('POST', '/sts/exchange', query.toString(), {
      'content-type': 'Application/X-WWW-Form-URLencoded; charset=utf-8',
    }),
  ]
  const caps = answers.map((answer) => claimsOf(ok(answer).token).cap)
  assert.equal(Object.keys(caps[0]).length, 1)
  for (const cap of caps) assert.deepEqual(cap, caps[0])
})

test('ignores a JSON body with any content', async () => {
  const { pinfold } = scene
  const client = pinfold.withToken(token)
  const headers = { 'content-type': 'application/json' }
  const query = searchOf({ aud: url, identity: uid })
  for (const body of ['{"cap":["groups.list"]}', '{', '[]']) {
    const answer = ok(await client.call('POST', `/sts/exchange?${query}`, body, headers))
    assert.ok(claimsOf(answer.token).cap[scene.org.uid])
  }
  assertInvalid(
    await client.call('POST', '/sts/exchange', JSON.stringify({ aud: [url], identity: uid }), headers),
    'aud',
  )
})

test('gRPC exchanges tokens like REST', async () => {
  using grpc = openGrpc(scene.pinfold.port)
  const desc = SecurityTokenService.method.exchange
  const call = (request: Json, bearer: string | undefined = token) =>
    grpc.call(desc, create(desc.input, request), { token: bearer })
  const answer = await call({ aud: [url], identity: uid })
  assert.equal(answer.code, 0, answer.message)
  const { token: issued, refreshToken, expiry } = answer.response as unknown as Json
  assert.equal(refreshToken, '')
  assert.equal(Number(expiry.seconds), claimsOf(issued).exp)
  assert.equal(claimsOf(issued).sub, uid)

  const codes = await Promise.all([
    call({ identity: uid }),
    call({ aud: [url], identity: 'x' }),
    call({ aud: [url], identity: `${scene.org.uid}/0123456789abcdef` }),
    call({ aud: [url] }),
    call({ aud: [url], identity: uid }, 'x.y.z'),
    grpc.call(desc, create(desc.input, { aud: [url], identity: uid })),
  ])
  assert.deepEqual(
    codes.map(({ code }) => code),
    [3, 3, 7, 5, 16, 16],
  )
})

test('requires an audience of this server', async () => {
  const client = scene.pinfold.withToken(token)
  assertInvalid(await client.post(`/sts/exchange?identity=${uid}`), 'aud')
  const near = [`${url}/`, host.toUpperCase().concat('.'), `.${host}`, `a/b.${host}`, `a.${host}.b`, `a${host}`]
  for (const aud of ['', 'https://other.example.com', ...near, [url, 'other']]) {
    assertInvalid(await scene.exchange(token, { identity: uid, aud }), 'aud')
  }
  assertInvalid(await scene.exchange(undefined, { identity: uid, aud: 'other' }), 'aud')
})

test('a token has one audience as text, and several audiences as a list', async () => {
  const audienceOf = async (aud: string[]) =>
    claimsOf(ok(await scene.exchange(token, { identity: uid, aud })).token).aud
  assert.equal(await audienceOf([url]), url)
  assert.equal(await audienceOf([host]), host)
  assert.equal(await audienceOf([`team.${host}`]), `team.${host}`)
  assert.deepEqual(await audienceOf([host, url]), [host, url])
})

test('the API refuses a token for the registry, and accepts one for both', async () => {
  const { pinfold } = scene
  const registry = ok(await scene.exchange(token, { identity: uid, aud: host })).token
  assertError(await pinfold.withToken(registry).get('/registry/v2/repos'), 401, 16, 'UNAUTHENTICATED')
  const both = ok(await scene.exchange(token, { identity: uid, aud: [host, url] })).token
  ok(await pinfold.withToken(both).get('/registry/v2/repos'))
})

test('returns the same error for a missing identity and for an identity that the token does not match', async () => {
  const other = await scene.identity({ claimMatch: { issuer: scene.issuer.url, subject: 'another' } })
  const answers = [
    await scene.exchange(token, { identity: other.uid }),
    await scene.exchange(token, { identity: `${scene.org.uid}/0123456789abcdef` }),
    await scene.exchange(token, { identity: '0'.repeat(40) }),
  ]
  for (const answer of answers) {
    assertDenied(answer)
    assert.equal(
      answer.body.message,
      'the token does not match the identity; check its uid and the claims that it requires',
    )
  }
  for (const identity of ['x', uid.toUpperCase(), `${uid}/`, `/${uid}`, '/']) {
    assertInvalid(await scene.exchange(token, { identity }), 'identity')
  }
})

test('without an identity, exchanges for the person with the issuer and subject, who must have an account', async () => {
  const { pinfold, issuer } = scene
  const search = searchOf({ issuer: issuer.url, subject })
  const person = ok(await pinfold.operator.get(`/iam/v2/identities:lookupIdentity?${search}`)).uid
  const answer = await scene.exchange(token, {})
  assertNotFound(answer, 'iam.pinfold.dev/Identity', person)
  assert.match(answer.body.message, /no account for this user/)
  assertUnauthenticated(await scene.exchange(await scene.token({ exp: 1 }), {}))
})

test('a token is enough to look up the uid of a person, also before the person has an account', async () => {
  const { pinfold } = scene
  const stranger = await pinfold.as((await scene.identity()).uid)
  const lookup = async (parameters: Json) => stranger.get(`/iam/v2/identities:lookupIdentity?${searchOf(parameters)}`)
  // Uid of a person: the first 20 bytes of SHA-256 of the issuer, a zero byte and the subject.
  const found = ok(await lookup({ issuer: 'https://accounts.google.com', subject: '1234' })).uid
  assert.equal(found, 'f285214424f7232a45ced1b689adbd4db44ad328')
  assert.equal(ok(await lookup({ issuer: 'accounts.google.com', subject: '1234' })).uid, found)
  assertInvalid(await lookup({ subject: '1234' }), 'issuer')
  assertInvalid(await lookup({ issuer: 'https://accounts.google.com' }), 'subject')
  assertInvalid(await lookup({ issuer: 'https://a\u0000b', subject: 'c' }), 'issuer')
  assertError(
    await pinfold.anonymous.get('/iam/v2/identities:lookupIdentity?issuer=a&subject=b'),
    401,
    16,
    'UNAUTHENTICATED',
  )
})

test('the issued token has exactly the claims in the contract, and its key is published', async () => {
  const before = Math.floor(Date.now() / 1000)
  const answer = ok(await scene.exchange(await scene.token({ aud: ['other', url] }), { identity: uid }))
  const keys = createRemoteJWKSet(new URL(`${url}/.well-known/jwks.json`))
  const { payload, protectedHeader } = await jwtVerify(answer.token, keys, { issuer: url, audience: url })
  assert.equal(protectedHeader.typ, 'at+jwt')
  const { iat, exp, jti, cap, ...rest } = payload as Json
  assert.deepEqual(rest, {
    iss: url,
    sub: uid,
    aud: url,
    act: { iss: scene.issuer.url, sub: subject, aud: url },
  })
  assert.ok(iat >= before && iat <= Date.now() / 1000 && exp - iat === 3600)
  assert.equal(typeof jti, 'string')
  assert.deepEqual(Object.keys(cap), [scene.org.uid])
  assert.equal(answer.expiry, new Date(exp * 1000).toISOString())
})

test('returns the first requested audience that names this server, else the first requested audience', async () => {
  const actOf = async (identity: string, aud: string[]) => {
    return claimsOf(ok(await scene.exchange(await scene.token({ aud }), { identity })).token).act.aud
  }
  assert.equal(await actOf(uid, ['other', new URL(url).host, url]), new URL(url).host)
  const own = await scene.identity({ claimMatch: { issuer: scene.issuer.url, subject, audience: 'plant' } })
  assert.equal(await actOf(own.uid, ['other', 'plant']), 'other')
})

test('encodes capabilities in the token as the contract defines', async () => {
  const capOf = async (cap: string[]) =>
    claimsOf(ok(await scene.exchange(token, { identity: uid, cap })).token).cap[scene.org.uid]
  assert.equal(await capOf(['groups.list']), 'AAAAAAAAADIAAAAAAAAACA==')
  assert.equal(await capOf(['groups.list', 'repo.list']), 'AAAAAAAAADsEAAAAAAAACA==')
  assert.equal(await capOf(['tag.list', 'groups.list']), 'AAAAAAAAAEMAAAAAAAAACAAAAAAAAAAE')
})

test('refuses an exchange without a bearer token', async () => {
  assertUnauthenticated(
    await scene.exchange(undefined, { identity: uid }),
    'no token to exchange was sent; send it in the header "Authorization: Bearer TOKEN"',
  )
  const query = searchOf({ aud: url, identity: uid })
  for (const authorization of ['Basic YTpi', 'Bearer', 'Bearer ', token, `Bearer ${token} x`]) {
    const answer = await scene.pinfold.anonymous.call('GET', `/sts/exchange?${query}`, undefined, { authorization })
    assertUnauthenticated(answer, 'no token to exchange was sent; send it in the header "Authorization: Bearer TOKEN"')
  }
})

test('returns the same error for an unreachable or malformed issuer and for an invalid token', async () => {
  const { pinfold, org, issuer } = scene
  const nobody = 'http://127.0.0.1:1'
  const identity = await pinfold.seed.identity(org.uid, { claimMatch: { issuer: nobody, subject } })
  assertUnauthenticated(await scene.exchange(await scene.token({ iss: nobody }), { identity: identity.uid }))
  const path = `${issuer.url}/path`
  const lost = await pinfold.seed.identity(org.uid, { claimMatch: { issuer: path, subject } })
  assertUnauthenticated(await scene.exchange(await scene.token({ iss: path }), { identity: lost.uid }))
})

test('sends no request to an issuer unless the identity trusts it', async () => {
  await using other = await startExchange()
  const wrong = { issuer: 'https://issuer.example.com', subject }
  const stranger = await other.identity({ claimMatch: wrong })
  assertDenied(await other.exchange(await other.token(), { identity: stranger.uid }))
  assertDenied(await other.exchange(await other.token(), { identity: `${other.org.uid}/0123456789abcdef` }))
  assertError(await other.exchange(await other.token(), {}), 404, 5, 'NOT_FOUND', {
    type: 'ResourceInfo',
    resourceType: 'iam.pinfold.dev/Identity',
    resourceName: ok(
      await other.pinfold.operator.get(
        `/iam/v2/identities:lookupIdentity?${searchOf({ issuer: other.issuer.url, subject })}`,
      ),
    ).uid,
    owner: '',
    description: '',
  })
  assertUnauthenticated(await other.exchange(await other.token({ exp: 1 }), { identity: stranger.uid }))
  assert.deepEqual(other.issuer.requests, [])
})

test('after an issuer changes its key, no sign-in fails, and the old key is refused', async () => {
  await using other = await startExchange()
  const { uid: identity } = await other.identity()
  const before = await other.token()
  ok(await other.exchange(before, { identity }))
  ok(await other.exchange(before, { identity }))
  assert.equal(other.issuer.requests.length, 2)
  await other.issuer.rotate()
  const answers = await Promise.all(
    Array.from({ length: 5 }, async () => other.exchange(await other.token(), { identity })),
  )
  for (const answer of answers) ok(answer)
  assert.equal(other.issuer.requests.length, 4)
  assertUnauthenticated(await other.exchange(before, { identity }))
})

test('stores the last-seen time of an identity later, not in each exchange', async () => {
  const { pinfold } = scene
  const identity = await scene.identity()
  const stored = async () => {
    const row = await pinfold.app.db.get<{ time: string }>(
      sql`SELECT last_seen_time AS time FROM identities WHERE uid = ${identity.uid}`,
    )
    return row!.time
  }
  assert.equal(identity.lastSeenTime, identity.createTime)
  for (let left = 3; left > 0; left--) ok(await scene.exchange(token, { identity: identity.uid }))
  assert.equal(await stored(), identity.createTime)
  await pinfold.app.lastSeen.flush()
  const seen = await stored()
  assert.ok(seen > identity.createTime)
  const read = ok(await pinfold.operator.get(`/iam/v2/identities/${identity.uid}`))
  assert.deepEqual([read.lastSeenTime, read.updateTime], [seen, identity.updateTime])
  assertDenied(await scene.exchange(await scene.token({ sub: 'x' }), { identity: identity.uid }))
  await pinfold.app.lastSeen.flush()
  assert.equal(await stored(), seen)
})

test('WhoAmI returns the narrowed capabilities, times and audience of a token', async () => {
  const { pinfold, org } = scene
  const issued = ok(await scene.exchange(token, { identity: uid, aud: [host, url], cap: ['repo.list', 'groups.list'] }))
  const me = ok(await pinfold.withToken(issued.token).get('/auth/v1/ok'))
  const { iat, exp } = claimsOf(issued.token)
  assert.deepEqual(me.capabilities, [
    {
      group: { ...me.capabilities[0].group, id: org.uid, name: org.name },
      role: null,
      capabilities: ['groups.list', 'repo.list'],
    },
  ])
  assert.deepEqual(
    { ...me, capabilities: [] },
    {
      issuer: url,
      subject: uid,
      audience: [host, url],
      expiry: new Date(exp * 1000).toISOString(),
      issuedAt: new Date(iat * 1000).toISOString(),
      capabilities: [],
      email: '',
      profile: null,
    },
  )
  assert.deepEqual(
    WhoAmISchema.fields.filter(({ jsonName }) => !(jsonName in me)).map(({ name }) => name),
    [],
  )
})

test('WhoAmI returns the bindings on, above and below the folder of a token', async () => {
  const { pinfold, org } = scene
  const identity = (await scene.identity()).uid
  await pinfold.seed.binding(org.uid, identity, roleUids.viewer)
  const [folder, beside] = [await pinfold.seed.group(org.uid), await pinfold.seed.group(org.uid)]
  const below = await pinfold.seed.group(folder.uid)
  await pinfold.seed.binding(below.uid, identity, roleUids.editor)
  await pinfold.seed.binding(beside.uid, identity, roleUids.editor)
  const told = async (parameters: Json) => {
    const issued = ok(await scene.exchange(token, { identity, ...parameters }))
    const me = ok(await pinfold.withToken(issued.token).get('/auth/v1/ok'))
    return me.capabilities.map(({ group, role, capabilities }: Json) => [group.name, role?.name ?? capabilities])
  }
  const [name, belowName] = [folder.name, below.name]
  assert.deepEqual(await told({ scopes: folder.uid }), [
    [name, 'viewer'],
    [belowName, 'editor'],
  ])
  assert.deepEqual(await told({ scopes: folder.uid, cap: ['repo.list'] }), [
    [name, ['repo.list']],
    [belowName, ['repo.list']],
  ])
  // A binding above applies to the folder only until the binding is deleted.
  const narrowed = ok(await scene.exchange(token, { identity, scopes: folder.uid })).token
  const bound = ok(
    await pinfold.operator.get(`/iam/v2/roleBindings?identity=${identity}&group=${org.uid}`),
  ).roleBindings
  ok(await pinfold.operator.delete(`/iam/v2/roleBindings/${bound[0].uid}`))
  const me = ok(await pinfold.withToken(narrowed).get('/auth/v1/ok'))
  assert.deepEqual(
    me.capabilities.map((one: Json) => one.group.name),
    [belowName],
  )
})

test('WhoAmI returns all rights for the operator, and none for a caller without bindings', async () => {
  const { pinfold } = scene
  const operator = ok(await pinfold.operator.get('/auth/v1/ok'))
  assert.equal(operator.subject, operatorUid)
  assert.deepEqual(
    operator.capabilities.map((one: Json) => [one.group.id, one.role.name]),
    [['/', 'operator']],
  )
  const stranger = await pinfold.as((await scene.identity()).uid)
  assert.deepEqual(ok(await stranger.get('/auth/v1/ok')).capabilities, [])
  assertError(await pinfold.anonymous.get('/auth/v1/ok'), 401, 16, 'UNAUTHENTICATED')
})
