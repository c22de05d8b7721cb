import assert from 'node:assert/strict'
import { test } from 'node:test'
import { costOf, countCost } from '../support/cost-of-command.ts'
import { makeHome } from '../support/fake-sts.ts'
import { onPostgres } from '../support/pinfold.ts'
import { createStorage, runProcess, startInProcess, startProcess, tokenOf } from '../support/process.ts'

/** Modules that handle requests: hundreds of files. Commands spent most of their time on loading them. */
const ofServers =
  /^(?:gen|src\/(?:api|domains\/(?!iam\/signing-keys\/)|oci|scim|edge|contents))\/|^node_modules\/(?:@grpc|@bufbuild|prom-client)\//

function assertLight(modules: readonly string[], most: number) {
  assert.deepEqual(
    modules.filter((path) => ofServers.test(path)),
    [],
  )
  assert.ok(modules.length <= most, `${modules.length} modules, where ${most} are enough:\n${modules.join('\n')}`)
}

test('help, version and the list of settings load only a few modules', async () => {
  for (const args of [['--version'], ['--help'], ['help', 'images'], ['serve', '--help'], ['server', 'gc', '--help']]) {
    const { code, modules } = await costOf(args)
    assert.equal(code, 0)
    assertLight(modules, 56)
  }
})

test('a command loads modules to call a server, and none of the server itself', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  using home = makeHome()
  const env = { ...home.env, PINFOLD_API: server.url, PINFOLD_TOKEN: await tokenOf(storage) }
  for (const args of [
    ['images', 'list'],
    ['invitations', 'pending'],
    ['whoami'],
    ['webhooks', 'list'],
    ['members', 'list'],
  ]) {
    const { code, stderr, modules, ofNode } = await costOf(args, { env })
    assert.equal(code, 0, stderr)
    assertLight(modules, 50)
    // The modules of fetch take longer to load than the whole command.
    assert.ok(ofNode.some((name) => / http$/.test(name)))
    assert.deepEqual(
      ofNode.filter((name) => /undici/.test(name)),
      [],
    )
  }
})

test('the docker credential helper loads as few modules', async () => {
  using home = makeHome()
  const listed = await costOf(['docker-credential', 'list'], { env: home.env })
  assert.deepEqual([listed.code, listed.stdout], [0, '{}\n'])
  assertLight(listed.modules, 50)
  const asked = await costOf(['docker-credential', 'get'], { env: home.env, input: 'elsewhere.example' })
  assert.equal(asked.code, 1)
  assertLight(asked.modules, 60)
})

test('next to a server, an operator command opens the database and its keys, and loads no request handlers', async () => {
  await using storage = await createStorage()
  await using server = await startProcess(storage)
  const env = { ...storage.env, ...(onPostgres && { PINFOLD_API: server.url }) }
  for (const args of [['token'], ['server', 'gc', '--dry-run'], ['server', 'quotas', 'list']]) {
    const { code, stderr, modules } = await costOf([...args, ...storage.args], { env })
    assert.equal(code, 0, stderr)
    const engine = onPostgres ? /^node_modules\/(?:pg|postgres|split2|xtend)/ : /^node_modules\/pg/
    assertLight(
      modules.filter((path) => !/^src\/db\/migrations\//.test(path) && !(onPostgres && engine.test(path))),
      130,
    )
    assert.equal(
      modules.some((path) => path.startsWith('node_modules/pg/')),
      onPostgres,
    )
  }
})

test('completion includes each command, without running any', async () => {
  const { stdout } = await runProcess(['complete', '--', 'policies', ''])
  for (const name of ['retention', 'tag-protection', 'cooldown', 'admission'])
    assert.match(stdout, new RegExp(`^${name}\t`, 'm'))
  const completed = async (...words: string[]) => (await runProcess(['complete', '--', ...words])).stdout
  assert.match(await completed('me'), /^members\t/)
  assert.doesNotMatch(await completed(''), /^iam\t/m)
  assert.match(await completed('members', 'up'), /^update\t/)
  assert.match(await completed('identity-providers', 'scim', 'token', 're'), /^regenerate\t.*\nrevoke\t/)
  assert.match(await completed('roles', 'list', '-o', 'm'), /^markdown\s*\n/)
})

test('the completion script and the completion of a line load only the modules of that line', async () => {
  assertLight((await costOf(['complete', 'bash'])).modules, 50)
  assertLight((await costOf(['complete', '--', 'webhooks', ''])).modules, 60)
})

/** Packages for readmes, reference pages, sign-in providers, sources and reflection. Each is loaded at its first use. */
const forLater = [
  '@grpc/proto-loader',
  '@grpc/reflection',
  'ae-cvss-calculator',
  'grpc-health-check',
  'htmlparser2',
  'markdown-it',
  'oauth4webapi',
  'openid-client',
  'postcss',
  'protobufjs',
  'sanitize-html',
  'yauzl',
]

test('a server is ready before it loads modules that only some requests need', async () => {
  await using storage = await createStorage()
  using counter = countCost()
  await using server = await startProcess(storage, { env: counter.env })
  assert.equal((await fetch(`${server.url}/healthz`)).status, 200)
  server.kill('SIGTERM')
  assert.equal((await server.exited).code, 0)
  const { modules } = counter.read()
  const packageOf = (path: string) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]
  const loaded = new Set(modules.map(packageOf))
  assert.ok(loaded.has('@grpc/grpc-js'))
  assert.deepEqual(
    forLater.filter((name) => loaded.has(name)),
    [],
  )
  // With PostgreSQL, the modules of its client are loaded too.
  assert.ok(modules.length <= (onPostgres ? 1590 : 1490), `${modules.length} modules`)
})
