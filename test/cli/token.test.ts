import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { decodeJwt } from 'jose'
import { clientOf, onPostgres, roleUids } from '../support/pinfold.ts'
import { freePort } from '../support/ports.ts'
import { createStorage, run, startInProcess, tokenOf } from '../support/process.ts'

test('before the first start, the command prints no token and creates nothing', async () => {
  await using storage = await createStorage({ isEmpty: true })
  const data = join(storage.data, 'sub')
  const args = ['token', '--data', data, ...(onPostgres ? ['--database', storage.database] : [])]
  const { code, stdout, stderr } = await run(args, { env: storage.env })
  assert.deepEqual([code, stdout], [69, ''])
  const [why, next] = ['no server has used .* yet: it has no (?:database|tables)', 'start the server .*--data']
  assert.match(stderr, new RegExp(`^pinfold: ${why}\npinfold: ${next}\n$`))
  assert.equal(existsSync(data), false)
  if (onPostgres) assert.equal((await run(args, { env: storage.env })).stderr, stderr)
})

test('a token can be created between migration and first start if the URL is set', async () => {
  await using storage = await createStorage({ isEmpty: true })
  assert.equal((await run(['migrate', ...storage.args], { env: storage.env })).code, 0)
  const { code, stderr } = await run(['token', ...storage.args], { env: storage.env })
  assert.deepEqual([code, stderr.includes('set PINFOLD_URL')], [1, true])

  const url = 'https://registry.example.com'
  const { stdout } = await run(['token', ...storage.args], { env: { ...storage.env, PINFOLD_URL: url } })
  const token = stdout.trim()
  const claims = decodeJwt(token)
  assert.deepEqual([claims.iss, claims.aud, claims.exp! - claims.iat!], [url, url, 3600])
  const listen = `127.0.0.1:${await freePort()}`
  await using _server = await startInProcess(storage, { args: ['--url', url], listen })
  assert.equal((await clientOf(`http://${listen}`, token).get('/iam/v2/groups')).status, 200)
})

test('a token created next to a running server is for the operator, or for an identity', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  const operator = clientOf(server.url, await tokenOf(storage))
  const group = (await operator.post('/iam/v2/groups/', { name: 'acme' })).body
  const claimMatch = { issuer: 'https://issuer.example.com', subject: 'ci' }
  const identity = (await operator.post(`/iam/v2/identities/${group.uid}`, { name: 'ci', claimMatch })).body
  const binding = { identityUid: identity.uid, roleUid: roleUids.viewer }
  assert.equal((await operator.post(`/iam/v2/roleBindings/${group.uid}`, binding)).status, 200)

  const viewer = clientOf(server.url, await tokenOf(storage, ['--identity', identity.uid]))
  assert.equal((await viewer.get(`/iam/v2/groups/${group.uid}`)).status, 200)
  assert.equal((await viewer.post(`/registry/v2/repos/${group.uid}`, { name: 'web' })).status, 403)
  for (const name of ['ci', 'acme/ci']) {
    assert.equal(decodeJwt(await tokenOf(storage, ['--identity', name])).sub, identity.uid, name)
  }
})

test('creates no token for a missing identity', async () => {
  await using storage = await createStorage()
  assert.equal((await run(['migrate', ...storage.args], { env: storage.env })).code, 0)
  for (const uid of ['nobody', `${'a'.repeat(40)}/${'b'.repeat(16)}`]) {
    const { code, stdout, stderr } = await run(['token', ...storage.args, '--identity', uid], { env: storage.env })
    assert.deepEqual(
      [code, stdout, stderr],
      [1, '', `pinfold: there is no identity ${uid}; to list the identities: pinfold identities list\n`],
    )
  }
})

test('the API refuses a token for the registry', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  const token = await tokenOf(storage, ['--audience', 'registry'])
  assert.equal(decodeJwt(token).aud, new URL(server.url).host)
  assert.equal((await clientOf(server.url, token).get('/iam/v2/groups')).status, 401)
})
