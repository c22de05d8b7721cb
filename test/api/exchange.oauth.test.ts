// RFC 8693 at /oauth/token: the same exchange in the format of OAuth.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { claimsOf, type Scene, searchOf, startExchange, subject } from '../support/exchange.ts'
import { ok } from '../support/expect.ts'
import { type Answer, type Json, roleUids } from '../support/pinfold.ts'

const type = (name: string) => `urn:ietf:params:oauth:token-type:${name}`
const grant_type = 'urn:ietf:params:oauth:grant-type:token-exchange'
const formType = 'application/x-www-form-urlencoded'

let scene: Scene
let uid: string
let good: Json

before(async () => {
  scene = await startExchange()
  uid = (await scene.identity()).uid
  await scene.pinfold.seed.binding(scene.org.uid, uid, roleUids.viewer)
  good = { grant_type, subject_token: await scene.token(), subject_token_type: type('jwt'), identity: uid }
})

after(() => scene[Symbol.asyncDispose]())

const send = (form: Json, headers: Record<string, string> = { 'content-type': formType }): Promise<Answer> =>
  scene.pinfold.anonymous.call('POST', '/oauth/token', searchOf(form).toString(), headers)

function assertRefused(answer: Answer, error: string, status = 400): void {
  assert.equal(answer.status, status, answer.text)
  assert.deepEqual(Object.keys(answer.body), ['error', 'error_description'])
  assert.equal(answer.body.error, error, answer.text)
  assert.ok(answer.body.error_description.length > 0)
  assert.equal(answer.headers.get('cache-control'), 'no-store')
}

test('a token exchange responds as RFC 8693 requires, and the token works', async () => {
  const answer = await send(good)
  const { access_token: token, ...rest } = ok(answer)
  assert.deepEqual(rest, { issued_token_type: type('access_token'), token_type: 'Bearer', expires_in: 3600 })
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  assert.match(answer.headers.get('content-type')!, /^application\/json/)
  const { sub, aud, act } = claimsOf(token)
  assert.deepEqual([sub, aud, act.sub], [uid, scene.pinfold.url, subject])
  ok(await scene.pinfold.withToken(token).get('/registry/v2/repos'))
})

test('accepts each token type of the supported platforms as a subject token', async () => {
  for (const name of ['jwt', 'id_token', 'access_token']) {
    ok(await send({ ...good, subject_token_type: type(name), requested_token_type: type('access_token') }))
  }
  ok(await send(good, { 'content-type': 'Application/X-WWW-Form-Urlencoded;charset=UTF-8' }))
})

test('audience, resource, scope and cap determine the contents of the token', async () => {
  const { url } = scene.pinfold
  const { host } = new URL(url)
  const said = async (form: Json) => claimsOf(ok(await send({ ...good, ...form })).access_token)
  assert.equal((await said({ audience: host })).aud, host)
  assert.deepEqual((await said({ audience: host, resource: url })).aud, [host, url])
  assert.equal((await said({ resource: `${url}/mcp` })).aud, url, 'the tools are part of the API')
  const team = (await scene.pinfold.seed.group(scene.org.uid)).uid
  const other = (await scene.pinfold.seed.group(scene.org.uid)).uid
  const { cap } = await said({ scope: ` ${team}  ${other} `, cap: ['groups.list', 'repo.list'] })
  assert.deepEqual(cap, { [team]: 'AAAAAAAAADsEAAAAAAAACA==', [other]: 'AAAAAAAAADsEAAAAAAAACA==' })
})

test('returns a specific error code for each kind of malformed request', async () => {
  const wrong: [form: Json, error: string][] = [
    [{ grant_type: 'client_credentials' }, 'unsupported_grant_type'],
    [{ grant_type: [] }, 'unsupported_grant_type'],
    [{ grant_type: [grant_type, grant_type] }, 'invalid_request'],
    [{ subject_token: [] }, 'invalid_request'],
    [{ subject_token: '' }, 'invalid_request'],
    [{ subject_token: ['a', 'b'] }, 'invalid_request'],
    [{ subject_token_type: [] }, 'invalid_request'],
    [{ subject_token_type: type('saml2') }, 'invalid_request'],
    [{ requested_token_type: type('refresh_token') }, 'invalid_request'],
    [{ actor_token: 'x', actor_token_type: type('jwt') }, 'invalid_request'],
    [{ identity: 'x' }, 'invalid_request'],
    [{ identity: [uid, uid] }, 'invalid_request'],
    [{ cap: 'repo.fly' }, 'invalid_request'],
    [{ scope: 'openid' }, 'invalid_scope'],
    [{ scope: '0'.repeat(40) }, 'invalid_scope'],
    [{ audience: 'https://other.example.com' }, 'invalid_target'],
    [{ resource: 'https://other.example.com' }, 'invalid_target'],
    [{ subject_token: 'x.y.z' }, 'invalid_grant'],
    [{ subject_token: await scene.token({ exp: 1 }) }, 'invalid_grant'],
    [{ subject_token: await scene.token({ sub: 'x' }) }, 'invalid_grant'],
    [{ identity: `${scene.org.uid}/0123456789abcdef` }, 'invalid_grant'],
    [{ identity: '' }, 'invalid_grant'],
  ]
  for (const [form, error] of wrong) assertRefused(await send({ ...good, ...form }), error)
})

test('accepts only a form in a POST request', async () => {
  const { anonymous } = scene.pinfold
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const answer = await anonymous.call(method, `/oauth/token?${searchOf(good)}`)
    assertRefused(answer, 'invalid_request', 405)
    assert.equal(answer.headers.get('allow'), 'POST')
  }
  for (const contentType of ['application/json', 'text/plain', 'multipart/form-data; boundary=x']) {
    assertRefused(await send(good, { 'content-type': contentType }), 'invalid_request')
  }
  // Query parameters appear in logs, so the endpoint ignores them.
  const inQuery = await anonymous.call('POST', `/oauth/token?${searchOf(good)}`, '', { 'content-type': formType })
  assertRefused(inQuery, 'unsupported_grant_type')
  assertRefused(await send({ ...good, subject_token: 'x'.repeat(70_000) }), 'invalid_request', 413)
})

test('reports an internal error without its cause', async () => {
  const { app } = scene.pinfold
  const { grants } = app
  const failing = async (error: Error) => {
    app.grants = { of: () => Promise.reject(error), clear: () => {} }
    try {
      return await send(good)
    } finally {
      app.grants = grants
    }
  }
  const bug = await failing(new Error('secret text'))
  assert.deepEqual([bug.status, bug.body], [500, { error: 'server_error' }])
  const down = await failing(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }))
  assert.deepEqual([down.status, down.body], [503, { error: 'temporarily_unavailable' }])
  assert.equal(down.headers.get('retry-after'), '1')
})
