import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CredentialSource, createCredentials, type Environment } from './credentials.ts'

const minute = 60_000
/** Time limit for tests that would otherwise wait forever. */
const timeout = 20_000
const start = Date.parse('2026-03-01T00:00:00Z')
const inFile = (id: string, more = '') => `aws_access_key_id = ${id}\naws_secret_access_key=secret-${id}\n${more}`

function newFolder() {
  const path = mkdtempSync(join(tmpdir(), 'pinfold-credentials-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

type Answer = { status?: number; body: string }

/** Endpoint that responds with `answer`, and records its requests. */
async function endpoint(answer: (req: IncomingMessage, body: string) => Answer | Promise<Answer>) {
  const asked: string[] = []
  const server = createServer(async (req, res) => {
    asked.push(`${req.method} ${req.url}`)
    const { status = 200, body } = await answer(req, await text(req))
    res.writeHead(status).end(body)
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

const given = (id: string, expires: number) =>
  JSON.stringify({
    AccessKeyId: id,
    SecretAccessKey: `secret-${id}`,
    Token: `token-${id}`,
    Expiration: new Date(expires).toISOString(),
  })

const nowhere = { AWS_EC2_METADATA_DISABLED: 'true' }
/** Resolves when the client returns these credentials, even if other callers request credentials meanwhile. */
const changed = async (source: CredentialSource, id: string): Promise<void> => {
  while ((await source.get()).accessKeyId !== id) await sleep(1)
}
const idOf = async (env: Environment) => (await createCredentials(env, 'us-east-1').get()).accessKeyId

test('reads credentials from the environment first, then from the profile in a file', async () => {
  using home = newFolder()
  mkdirSync(join(home.path, '.aws'))
  const other = join(home.path, 'other')
  writeFileSync(
    join(home.path, '.aws', 'credentials'),
    `[default]\n${inFile('A')}\n[work]\n${inFile('B', 'aws_session_token = t\n')}`,
  )
  writeFileSync(other, `[default]\n${inFile('C')}`)
  const env = { ...nowhere, HOME: home.path }
  assert.equal(await idOf({ ...env, AWS_ACCESS_KEY_ID: 'E', AWS_SECRET_ACCESS_KEY: 's' }), 'E')
  assert.equal(await idOf(env), 'A')
  const work = await createCredentials({ ...env, AWS_PROFILE: 'work' }, 'us-east-1').get()
  assert.deepEqual([work.accessKeyId, work.secretAccessKey, work.sessionToken], ['B', 'secret-B', 't'])
  assert.equal(await idOf({ ...env, AWS_SHARED_CREDENTIALS_FILE: other }), 'C')
  await assert.rejects(idOf({ ...env, AWS_PROFILE: 'missing' }), /no credentials for the profile missing/)
  await assert.rejects(idOf({ ...nowhere, HOME: '/nowhere' }), /there are no credentials/)
})

test('uses a replaced credentials file after a minute', async () => {
  using home = newFolder()
  const file = join(home.path, 'credentials')
  writeFileSync(file, `[default]\n${inFile('A')}`)
  let now = start
  const source = createCredentials({ ...nowhere, AWS_SHARED_CREDENTIALS_FILE: file }, 'us-east-1', () => now)
  assert.equal((await source.get()).accessKeyId, 'A')
  writeFileSync(file, `[default]\n${inFile('B')}`)
  assert.equal((await source.get()).accessKeyId, 'A')
  now += minute
  assert.equal((await source.get()).accessKeyId, 'B')
})

test('requests container credentials with a token, and again well before they expire', { timeout }, async () => {
  let now = start
  let fails = false
  let count = 0
  await using container = await endpoint(({ headers }) => {
    if (fails || headers.authorization !== 'let me in') return { status: 403, body: 'no' }
    return { body: given(`A${++count}`, now + 60 * minute) }
  })
  const env = {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${container.url}/creds`,
    AWS_CONTAINER_AUTHORIZATION_TOKEN: 'let me in',
  }
  const source = createCredentials(env, 'us-east-1', () => now)
  const both = await Promise.all([source.get(), source.get()])
  assert.deepEqual(
    both.map(({ accessKeyId }) => accessKeyId),
    ['A1', 'A1'],
  )
  assert.equal(both[0]!.sessionToken, 'token-A1')
  assert.equal(container.asked.length, 1)
  now += 44 * minute
  assert.equal((await source.get()).accessKeyId, 'A1')
  now += 2 * minute
  await changed(source, 'A2')
  // After a refusal, the client requests new credentials.
  source.forget(await source.get())
  assert.equal((await source.get()).accessKeyId, 'A3')
  // While the endpoint fails, the client uses the old credentials until they expire.
  now += 50 * minute
  fails = true
  assert.equal((await source.get()).accessKeyId, 'A3')
  now += 11 * minute
  await assert.rejects(source.get(), /returned no credentials \(status 403\)/)
  fails = false
  assert.equal((await source.get()).accessKeyId, 'A4')
})

test('does not wait for new credentials while the old ones are valid, and does not report them as missing', {
  timeout,
}, async () => {
  let now = start
  let count = 0
  let answer = { until: Promise.resolve(), status: 200 }
  await using container = await endpoint(async () => {
    const { until, status } = answer
    await until
    return { status, body: given(`A${++count}`, now + 60 * minute) }
  })
  const hang = (status: number) => {
    const { promise: until, resolve } = Promise.withResolvers<void>()
    answer = { until, status }
    return resolve
  }
  const env = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${container.url}/creds` }
  const source = createCredentials(env, 'us-east-1', () => now)
  await source.get()
  const goOn = hang(200)
  for (const minutes of [50, 8]) {
    now += minutes * minute
    assert.equal((await source.get()).accessKeyId, 'A1')
  }
  // Credentials in their last minute may expire before the request reaches the bucket.
  now += 1.5 * minute
  const waiting = source.get()
  assert.equal(await Promise.race([waiting.then(() => 'there'), sleep(50, 'waiting')]), 'waiting')
  goOn()
  assert.equal((await waiting).accessKeyId, 'A2')
  assert.equal(container.asked.length, 2)

  // No caller waits for the credentials, so the client does not report a failure after their expiry.
  now += 50 * minute
  const fail = hang(500)
  assert.equal((await source.get()).accessKeyId, 'A2')
  now += 11 * minute
  fail()
  await sleep(50)
  await assert.rejects(source.get(), /status 500/)
})

test('waits for new credentials after a refusal, and returns the same ones if there are no others', async () => {
  let [fails, hangs] = [false, false]
  let count = 0
  let now = start
  const { promise: until, resolve: goOn } = Promise.withResolvers<void>()
  await using container = await endpoint(async () => {
    if (hangs) await until
    return { status: fails ? 500 : 200, body: given(`A${++count}`, start + 60 * minute) }
  })
  const env = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${container.url}/creds` }
  const source = createCredentials(env, 'us-east-1', () => now)
  source.forget(await source.get())
  const second = await source.get()
  assert.equal(second.accessKeyId, 'A2')
  fails = true
  source.forget(second)
  assert.equal(await source.get(), second)
  // No caller waits for new credentials while the old ones are valid.
  now += minute
  hangs = true
  assert.equal(await Promise.race([source.get(), sleep(60_000, 'waiting', { ref: false })]), second)
  hangs = false
  goOn()
  await sleep(50)
  fails = false
  source.forget(second)
  assert.notEqual(await source.get(), second)
})

test('requires a container endpoint on this machine, or with https', async () => {
  const env = { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://elsewhere.example.com/creds' }
  await assert.rejects(idOf(env), /must be an https URL or a URL of this machine/)
})

test('requests machine credentials with a session token', async () => {
  await using machine = await endpoint(({ method, url, headers }) => {
    if (method === 'PUT' && url === '/latest/api/token') return { body: 'T' }
    if (headers['x-aws-ec2-metadata-token'] !== 'T') return { status: 401, body: '' }
    if (url === '/latest/meta-data/iam/security-credentials/') return { body: 'registry\n' }
    return { body: url?.endsWith('/registry') ? given('M', start) : '' }
  })
  assert.equal(await idOf({ AWS_EC2_METADATA_SERVICE_ENDPOINT: machine.url }), 'M')
  assert.equal(machine.asked.length, 3)
})

test('exchanges a platform token for role credentials, and reads the token file again each time', {
  timeout,
}, async () => {
  using folder = newFolder()
  const file = join(folder.path, 'token')
  writeFileSync(file, 'first\n')
  let now = start
  await using sts = await endpoint((_, body) => {
    const form = new URLSearchParams(body)
    const id = `${form.get('Action')}/${form.get('RoleArn')}/${form.get('WebIdentityToken')}`
    const expires = new Date(now + 10 * minute).toISOString()
    return {
      body: `<Answer><Credentials><AccessKeyId>${id}</AccessKeyId><SecretAccessKey>a&amp;b</SecretAccessKey><SessionToken>t</SessionToken><Expiration>${expires}</Expiration></Credentials></Answer>`,
    }
  })
  const env = { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: 'arn', AWS_ENDPOINT_URL_STS: sts.url }
  const source = createCredentials(env, 'us-east-1', () => now)
  const first = await source.get()
  assert.equal(first.accessKeyId, 'AssumeRoleWithWebIdentity/arn/first')
  assert.deepEqual([first.secretAccessKey, first.sessionToken, first.expires], ['a&b', 't', start + 10 * minute])
  writeFileSync(file, 'second')
  now += 6 * minute
  await changed(source, 'AssumeRoleWithWebIdentity/arn/second')
})
