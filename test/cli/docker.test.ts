import assert from 'node:assert/strict'
import { chownSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { decodeJwt } from 'jose'
import { startIssuer } from '../support/fake-issuer.ts'
import { makeHome } from '../support/fake-sts.ts'
import { roleUids, startPinfold } from '../support/pinfold.ts'
import { project, run, runProcess } from '../support/process.ts'

const helper = join(project, 'bin/docker-credential-pinfold')
const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** Identity with permission to create pull tokens, signed in with a platform token. */
async function start() {
  const pinfold = await startPinfold()
  await using issuer = await startIssuer('ES256')
  const home = makeHome()
  const org = await pinfold.seed.group('', { name: 'acme' })
  const staticKeys = { issuer: issuer.url, subject: 'ci', issuerKeys: JSON.stringify(issuer.jwks()) }
  const identity = await pinfold.seed.identity(org.uid, { claimMatch: undefined, staticKeys })
  await pinfold.seed.binding(org.uid, identity.uid, roleUids.owner)
  const file = join(home.home, 'token')
  writeFileSync(file, await issuer.token({ sub: 'ci', aud: pinfold.url }))
  const env = { ...home.env, PINFOLD_API: pinfold.url, DOCKER_CONFIG: join(home.home, 'docker') }
  const registry = new URL(pinfold.url).host
  return {
    pinfold,
    org,
    identity,
    registry,
    home,
    config: join(home.home, 'docker/config.json'),
    cli: (...args: string[]) => run(args, { env }),
    helper: (action: string, input: string) => runProcess([action], { env, command: helper, input }),
    login: () => run(['login', '--identity', identity.uid, '--identity-token', file], { env }),
    /** Access that a password gives at the registry. */
    async accessWith(user: string, password: string) {
      const headers = { authorization: basic(user, password) }
      const answer = await pinfold.anonymous.call(
        'GET',
        '/token?scope=repository:acme/app:pull,push',
        undefined,
        headers,
      )
      return answer.status === 200 ? decodeJwt<{ access: any[] }>(answer.body.token).access[0].actions : answer.status
    },
    async [Symbol.asyncDispose]() {
      home[Symbol.dispose]()
      await pinfold[Symbol.asyncDispose]()
    },
  }
}

test('Docker gets a registry token, which is valid as a password and as a bearer token', async () => {
  await using it = await start()
  const before = await it.helper('get', it.registry)
  assert.equal(before.code, 77)
  assert.match(before.stdout, /^pinfold: not signed in/)
  await it.login()
  for (const server of [it.registry, `https://${it.registry}/v2/`, `${it.registry}\n`, `team.${it.registry}`]) {
    const { code, stdout, stderr } = await it.helper('get', server)
    assert.deepEqual([code, stderr], [0, ''])
    const { ServerURL, Username, Secret } = JSON.parse(stdout)
    assert.deepEqual([ServerURL, Username], [server.trim(), '_token'])
    assert.deepEqual(await it.accessWith(Username, Secret), ['pull', 'push'])
    assert.equal((await it.pinfold.withToken(Secret).get('/v2/')).status, 200)
  }
})

test('the helper has credentials only for the configured registry, lists none, and stores nothing', async () => {
  await using it = await start()
  await it.login()
  for (const server of ['registry.example.com', `x${it.registry}`, `${it.registry}.example.com`]) {
    const other = await it.helper('get', server)
    assert.deepEqual([other.code, other.stdout], [1, 'credentials not found in native keychain\n'])
  }
  assert.deepEqual(await it.helper('list', ''), { code: 0, stdout: '{}\n', stderr: '' })
  const stored = JSON.stringify({ ServerURL: it.registry, Username: 'a', Secret: 'b' })
  assert.deepEqual(await it.helper('store', stored), { code: 0, stdout: '', stderr: '' })
  assert.deepEqual(await it.helper('erase', it.registry), { code: 0, stdout: '', stderr: '' })
  assert.equal((await it.helper('frobnicate', '')).code, 64)
})

test('configure-docker adds the helper and keeps the rest of the file', async () => {
  await using it = await start()
  mkdirSync(join(it.config, '..'))
  const auths = { [it.registry]: { auth: 'old' }, 'other.example.com': { auth: 'kept' } }
  writeFileSync(it.config, JSON.stringify({ auths, credHelpers: { 'ecr.example.com': 'ecr' }, currentContext: 'x' }))
  assert.equal((await it.cli('docker', 'configure')).code, 0)
  assert.deepEqual(JSON.parse(readFileSync(it.config, 'utf8')), {
    auths: { 'other.example.com': { auth: 'kept' } },
    credHelpers: { 'ecr.example.com': 'ecr', [it.registry]: 'pinfold' },
    currentContext: 'x',
  })
  writeFileSync(it.config, '[broken')
  const broken = await it.cli('docker', 'configure')
  assert.deepEqual([broken.code, readFileSync(it.config, 'utf8')], [78, '[broken'])
})

test('configure does not write an unchanged file, and keeps its owner', async () => {
  using home = makeHome()
  const folder = join(home.home, 'docker')
  const file = join(folder, 'config.json')
  mkdirSync(folder)
  writeFileSync(file, '{"auths":{}}')
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(file, 1234, 1235)
  const env = { ...home.env, DOCKER_CONFIG: folder, PINFOLD_API: 'https://registry.example.com' }
  const configure = async () => {
    const { code, stderr } = await run(['docker', 'configure'], { env })
    assert.equal(code, 0, stderr)
    return statSync(file)
  }
  const first = await configure()
  assert.match(readFileSync(file, 'utf8'), /"registry\.example\.com": "pinfold"/)
  if (isRoot) assert.deepEqual([first.uid, first.gid], [1234, 1235])
  assert.equal((await configure()).ino, first.ino)
})

test('a pull token can be created and listed, pulls but does not push, and ends with its identity', async () => {
  await using it = await start()
  await it.login()
  const made = await it.cli('tokens', 'pull', 'create', '--name', 'cluster', '--ttl', '24h', '-o', 'json')
  assert.equal(made.code, 0, made.stderr)
  const { identity, user, password, expiry, registry } = JSON.parse(made.stdout)
  assert.equal(user, identity)
  assert.equal(registry, it.registry)
  const hours = (Date.parse(expiry) - Date.now()) / 3_600_000
  assert.ok(hours > 23.9 && hours <= 24, expiry)
  assert.deepEqual(await it.accessWith(identity, password), ['pull'])

  const listed = JSON.parse((await it.cli('tokens', 'pull', 'list', '-o', 'json')).stdout)
  assert.deepEqual(
    listed.items.map((one: Record<string, string>) => [one.identity, one.user, one.name]),
    [[identity, identity, 'cluster']],
  )
  const none = await it.cli('tokens', 'pull', 'list', '--in', 'acme', '--expired')
  assert.deepEqual([none.code, none.stdout], [0, ''])
  const other = await it.cli('tokens', 'pull', 'delete', it.identity.uid)
  assert.deepEqual(
    [other.code, other.stderr],
    [
      64,
      `pinfold: nothing was deleted: ${it.identity.uid} is not a pull token; pinfold tokens pull list lists pull tokens\n`,
    ],
  )
  const lines = (await it.cli('tokens', 'pull', 'create', '--name', 'cron', '-o', 'env')).stdout
  const [, cron, secret] = /^export PINFOLD_OCI_IDENTITY_ID='(.*)'\nexport PINFOLD_OCI_TOKEN='(.*)'\n$/.exec(lines)!
  assert.deepEqual(await it.accessWith(cron!, secret!), ['pull'])
  assert.equal((await it.cli('tokens', 'pull', 'delete', 'acme/cron')).code, 0)
  assert.equal(await it.accessWith(cron!, secret!), 401)
  const nobody = await it.cli('tokens', 'pull', 'delete', it.identity.name)
  assert.equal(nobody.code, 1)
  assert.match(nobody.stderr, /no pull token .*\n.*pinfold tokens pull list/)
  assert.equal((await it.cli('tokens', 'pull', 'delete', '')).code, 64)

  assert.equal((await it.cli('tokens', 'pull', 'delete', identity)).code, 0)
  assert.equal(await it.accessWith(identity, password), 401)
})

test('prints a pull token as a docker login command, or stores it in the Docker configuration', async () => {
  await using it = await start()
  await it.login()
  await it.cli('docker', 'configure')
  const printed = await it.cli('docker', 'configure', '--pull-token')
  const [, password, user] = /^echo (\S+) \| docker login --username (\S+) --password-stdin (\S+)$/m.exec(
    printed.stdout,
  )!
  assert.deepEqual(await it.accessWith(user!, password!), ['pull'])

  const saved = await it.cli('docker', 'configure', '--pull-token', '--save', '--in', it.org.uid)
  assert.deepEqual([saved.code, saved.stdout], [0, ''])
  const config = JSON.parse(readFileSync(it.config, 'utf8'))
  assert.deepEqual(config.credHelpers, {})
  const [name, ...rest] = Buffer.from(config.auths[it.registry].auth, 'base64').toString().split(':')
  assert.deepEqual(await it.accessWith(name!, rest.join(':')), ['pull'])
  assert.equal((statSync(it.config).mode & 0o777).toString(8), '600')
})

test('invalid options for a pull token create nothing', async () => {
  await using it = await start()
  await it.login()
  for (const args of [
    ['--ttl', '0h'],
    ['--ttl', '8761h'],
    ['--ttl', 'soon'],
    ['--in', 'nobody'],
  ]) {
    const { code, stdout } = await it.cli('tokens', 'pull', 'create', ...args)
    assert.deepEqual([code, stdout], [64, ''], args.join(' '))
  }
  const named = await it.cli('tokens', 'pull', 'create', '--name', 'No Such Name')
  assert.equal(named.code, 1)
  assert.match(named.stderr, /name/)
  // A caller without permission to grant the role is denied, and no identity is created.
  const creator = await it.pinfold.seed.role(it.org.uid, ['CAP_IAM_IDENTITY_CREATE', 'CAP_IAM_IDENTITY_DELETE'])
  const weak = await it.pinfold.seed.member(it.org.uid, creator.uid)
  const env = { ...it.home.env, PINFOLD_API: it.pinfold.url, PINFOLD_TOKEN: await it.pinfold.tokenFor(weak.uid) }
  const refused = await run(['tokens', 'pull', 'create', '--in', it.org.uid], { env })
  assert.equal(refused.code, 77)
  const { identities } = (await it.pinfold.operator.get(`/iam/v2/identities?uidp.children_of=${it.org.uid}`)).body
  assert.deepEqual(identities.map((one: { uid: string }) => one.uid).sort(), [it.identity.uid, weak.uid].sort())
})
