import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync, statSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ok } from '../support/expect.ts'
import { clientOf } from '../support/pinfold.ts'
import {
  cleanEnv,
  createStorage,
  program,
  project,
  runProcess,
  startInProcess,
  startProcess,
  tokenOf,
} from '../support/process.ts'
import { eventually } from '../support/receiver.ts'

test('the commands printed at a first start work word for word', async () => {
  await using storage = await createStorage({ isEmpty: true })
  await using server = await startProcess(storage)
  const { stdout } = await untilPrinted(server.output, /repos list.*\n/)
  const lines = stdout
    .split('\n')
    .filter((line) => line.startsWith('  '))
    .map((line) => line.trim())
  assert.equal(lines.length, storage.database ? 4 : 3)

  const secrets = storage.database ? { PINFOLD_DATABASE: storage.database } : {}
  const env = { ...storage.env, ...secrets }
  const steps = await runProcess(['-ec', lines.join('\n')], { command: 'sh', env })
  assert.deepEqual([steps.code, steps.stderr], [0, ''])
  assert.match(steps.stdout, /^first-steps\/web .*The shop$/m)
  assert.doesNotMatch(stdout, /postgres:/)
})

test('an unhandled rejection is logged and counted, and the server continues', {
  skip: program.includes('executable') && 'an executable does not import the code of NODE_OPTIONS',
}, async () => {
  await using storage = await createStorage()
  const reject = 'process.on("SIGPIPE", () => void Promise.reject(new Error("nobody waits")))'
  const env = { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(reject)}"` }
  await using server = await startProcess(storage, { env, mayReject: true })
  server.kill('SIGPIPE')
  const logged = await eventually(
    async () => server.output.stderr.split('\n').find((line) => line.includes('promise rejection was not handled')),
    (line) => line !== undefined,
  )
  const { level, error } = JSON.parse(logged!)
  assert.deepEqual([level, error.message], ['error', 'nobody waits'])
  const token = await tokenOf(storage)
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`${server.url}/metrics`, { headers })
  assert.match(await answer.text(), /^pinfold_unhandled_rejections_total 1$/m)
})

test('logs nothing before it is ready, unless a log level is given', async () => {
  const started = async (args: readonly string[]) => {
    await using storage = await createStorage({ isEmpty: true })
    const child = spawn(program, ['serve', ...storage.args, '--listen', '127.0.0.1:0', ...args], {
      cwd: project,
      env: cleanEnv(storage.env),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const shown: string[] = []
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        shown.push(...text.trimEnd().split('\n'))
        if (text.includes('"serving"')) child.kill('SIGTERM')
      })
    await once(child, 'close')
    return shown
  }
  const [first, second, third, ...others] = await started([])
  const url = /^ready (http:\S+)$/.exec(first!)?.[1]
  assert.ok(url, first)
  const printed = [second, third, ...others]
  assert.ok(printed.includes(`console ${url}/ui/`), printed.join('\n'))
  assert.ok(printed.some((line) => line?.startsWith('To open the console as the operator, run: ')))
  assert.ok(printed.some((line) => line?.includes('"message":"database migrated","migrations":')))
  assert.match((await started(['--log-level', 'info']))[0]!, /"message":"database migrated"/)
})

test('a second start does not print the commands again', async () => {
  await using storage = await createStorage()
  {
    await using first = await startProcess(storage)
    first.kill('SIGTERM')
    await first.exited
  }
  await using second = await startProcess(storage)
  second.kill('SIGTERM')
  await second.exited
  assert.doesNotMatch(second.output.stdout, /First steps/)
})

test('stores compiled code in the data folder if the program folder is not writable', async () => {
  await using storage = await createStorage()
  const keptWith = async (env: Record<string, string>) => {
    await using server = await startProcess(storage, { env })
    server.kill('SIGTERM')
    await server.exited
    return globSync('compiled/*/*', { cwd: storage.data }).length
  }
  assert.equal(await keptWith({ NODE_COMPILE_CACHE: join(storage.data, 'elsewhere') }), 0)
  assert.equal(await keptWith({ NODE_COMPILE_CACHE: '' }), 0, 'it is turned off')
  assert.ok((await keptWith({ NODE_COMPILE_CACHE: '/dev/null/nowhere' })) > 100)
})

test('a server releases memory that only its start needs', async () => {
  await using storage = await createStorage()
  await using server = await startProcess(storage)
  const token = await tokenOf(storage)
  await eventually(
    async () => {
      const text = await (
        await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${token}` } })
      ).text()
      const of = (what: string) => Number(new RegExp(`^nodejs_heap_size_${what}_bytes (\\S+)`, 'm').exec(text)?.[1])
      return of('total') / of('used')
    },
    (ratio) => ratio < 1.5,
  )
})

test('the started process is the server, and SIGTERM lets it finish its requests', async () => {
  await using storage = await createStorage()
  await using server = await startProcess(storage)
  const token = await tokenOf(storage)
  assert.match(readFileSync(`/proc/${server.pid}/cmdline`, 'utf8'), /src\/main\.ts\0serve/)

  const socket = connect(Number(new URL(server.url).port), '127.0.0.1').setEncoding('utf8')
  let answer = ''
  const begun = Promise.withResolvers<void>()
  socket.on('data', (text) => {
    answer += text
    begun.resolve()
  })
  const head = `POST /iam/v2/groups/ HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-length: 15\r\n`
  socket.write(`${head}expect: 100-continue\r\n\r\n{"name":`)
  await begun.promise
  const more = 'HTTP/1.1 100 Continue\r\n\r\n'
  assert.equal(answer, more)
  server.kill('SIGTERM')
  await sleep(300)
  assert.equal(answer, more)
  socket.write('"acme"}')
  const { code, signal } = await server.exited
  assert.deepEqual([code, signal], [0, null])
  assert.match(answer.slice(more.length), /^HTTP\/1\.1 200 /)
})

test('after SIGTERM it reports not ready for a while, and serves new connections', async () => {
  await using storage = await createStorage()
  await using server = await startProcess(storage, { env: { PINFOLD_LAMEDUCK_MS: '4000' } })
  // Each request uses a separate connection.
  const ask = (path: string) => fetch(server.url + path, { headers: { connection: 'close' } })
  assert.equal((await ask('/readyz')).status, 200)
  server.kill('SIGTERM')
  let shown = await ask('/readyz')
  while (shown.status === 200) shown = await ask('/readyz')
  assert.deepEqual([shown.status, await shown.text()], [503, 'draining\n'])
  assert.equal((await ask('/healthz')).status, 200)
  assert.equal((await ask('/iam/v2/groups')).status, 401)
  assert.deepEqual(await server.exited, { code: 0, signal: null })
  await assert.rejects(ask('/healthz'))
})

test('SIGHUP stops it like SIGTERM', async () => {
  await using storage = await createStorage()
  await using server = await startProcess(storage)
  server.kill('SIGHUP')
  assert.deepEqual(await server.exited, { code: 0, signal: null })
})

test('a folder that cannot store blobs causes one clear error line, and the server does not start', async () => {
  await using storage = await createStorage()
  const blobs = join(storage.data, 'not-mounted', 'blobs')
  const { code, stdout, stderr } = await runProcess(
    ['serve', ...storage.args, '--listen', '127.0.0.1:0', '--blobs', blobs],
    {
      env: { ...storage.env, PINFOLD_LOG_LEVEL: 'warn' },
    },
  )
  assert.deepEqual(
    [code, stdout, stderr],
    [1, '', `pinfold: blobs cannot be stored in ${blobs}: its parent folder does not exist\n`],
  )
})

test('an occupied port causes one clear error line, and the server does not start', async () => {
  await using storage = await createStorage()
  await using another = await createStorage()
  await using server = await startProcess(storage)
  const { host } = new URL(server.url)
  const second = await runProcess(['serve', ...another.args, '--listen', host], {
    env: { ...another.env, PINFOLD_LOG_LEVEL: 'warn' },
  })
  assert.equal(second.code, 1)
  assert.equal(
    second.stderr,
    `pinfold: cannot listen on ${host}: another program listens there; choose another address with --listen\n`,
  )
  assert.equal(second.stdout, '')
})

test('refuses a second server on the same data folder, also right after the first was killed', async (t) => {
  if (process.env.PINFOLD_TEST_DATABASE) return t.skip('with PostgreSQL there may be several')
  await using storage = await createStorage()
  await using server = await startProcess(storage)
  const second = await runProcess(['serve', ...storage.args, '--listen', '127.0.0.1:0'])
  assert.equal(second.code, 1)
  assert.match(second.stderr, /another server uses the data folder/)
  process.kill(server.pid, 'SIGKILL')
  await using _third = await startProcess(storage)
})

test('the demo fills an empty server once, and the printed commands work', async () => {
  await using storage = await createStorage()
  await using server = await startProcess(storage, { args: ['--demo'], env: { PINFOLD_PUBLIC_ORG: 'open' } })
  const { stdout } = await untilPrinted(server.output, /repos list --limit 5.*\n/)
  assert.match(stdout, /pinfold orgs list/)
  const client = clientOf(server.url, await tokenOf(storage))
  const count = async (path: string) => Number((await client.get(path)).body.totalCount)
  const roots = await client.get('/iam/v2/groups?uidp.in_root=true&order_by=name')
  assert.deepEqual(
    roots.body.groups.map((group: { name: string }) => group.name),
    ['acme', 'open'],
  )
  const open = roots.body.groups[1].uid
  assert.equal(await count(`/registry/v2/repos?uidp.children_of=${open}`), 20)
  assert.equal(await count('/registry/v2/repos?name=wolfi-base'), 0)
  assert.ok((await count('/iam/v2/identities')) >= 10)
  const bindings = (await client.get('/iam/v2/roleBindings')).body.roleBindings as { role: { name: string } }[]
  const bound = new Set(bindings.map((binding) => binding.role.name))
  for (const role of ['owner', 'editor', 'viewer', 'registry.push', 'registry.pull', 'auditor']) {
    assert.ok(bound.has(role), role)
  }
  const vulnerable = async (id: string) =>
    ((await client.get(`/registry/v2/vulnerableImages?vulnerability=${id}&page_size=100`)).body.images ?? []) as {
      tags: string[]
    }[]
  const exploited = await eventually(
    () => vulnerable('CVE-2023-44487'),
    (images) => images.length > 1,
  )
  // Later images have the fixed version, so no current tag except those of versions has the vulnerability.
  assert.ok(exploited.every(({ tags }) => !tags.includes('stable') && !tags.includes('candidate')))
  const acme = roots.body.groups[0].uid
  const follows = await eventually(
    async () => (await client.get(`/registry/v2/follows/${acme}`)).body.follows as { path: string; tagCount: number }[],
    (all) => all.some(({ path, tagCount }) => path === 'library/alpine' && tagCount === 4),
  )
  assert.equal(follows.length, 4)
  const receiver = /Webhooks of the demo arrive at (\S+)/.exec(server.output.stdout)![1]!
  await eventually(
    async () => (await fetch(receiver)).text(),
    (page) => page.includes('dev.pinfold.registry.push.v1'),
  )
  const { port } = new URL(receiver)
  assert.equal(await statusOf(Number(port), '//'), 200)

  server.kill('SIGTERM')
  await server.exited
  await using again = await startProcess(storage, { args: ['--demo'] })
  assert.match(again.output.stderr, /the example organization was not added: the server already has organizations/)
  assert.ok((await untilPrinted(again.output, /Webhooks of the demo/)).stdout.includes(receiver), 'the same receiver')
})

/** Status of a GET request whose path is sent as it is. */
async function statusOf(port: number, path: string): Promise<number | undefined> {
  const [answer] = (await once(get({ host: '127.0.0.1', port, path }), 'response')) as [IncomingMessage]
  answer.resume()
  return answer.statusCode
}

test('a server with other organizations gets no example, and may not call its own machine', async () => {
  await using storage = await createStorage()
  {
    await using server = await startInProcess(storage)
    ok(await clientOf(server.url, await tokenOf(storage)).post('/iam/v2/groups/', { name: 'acme' }))
  }
  await using server = await startInProcess(storage, { args: ['--demo'] })
  assert.match(server.output.stderr, /the example organization was not added/)
  assert.doesNotMatch(server.output.stdout, /Webhooks of the demo/)
  const client = clientOf(server.url, await tokenOf(storage))
  const [{ uid }] = ok(await client.get('/iam/v2/groups')).groups
  const sink = 'http://127.0.0.1:1/'
  assert.equal((await client.post(`/events/v2/subscriptions/${uid}`, { sink })).status, 400)
})

test('only the owner can read the master key file', async () => {
  await using storage = await createStorage()
  await using _server = await startProcess(storage)
  if (!storage.database) assert.equal(statSync(join(storage.data, 'master.key')).mode & 0o777, 0o600)
})

test('the server continues after the reader of its output exits', async () => {
  await using storage = await createStorage()
  const child = spawn(program, ['serve', ...storage.args, '--listen', '127.0.0.1:0'], {
    cwd: project,
    env: cleanEnv(storage.env),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [text] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
  const url = /ready (\S+)/.exec(text)![1]!
  child.stdout.destroy()
  child.stderr.destroy()
  for (let i = 0; i < 3; i++) assert.equal((await fetch(`${url}/iam/v2/roles`)).status, 401)
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

async function untilPrinted(output: { stdout: string }, pattern: RegExp): Promise<{ stdout: string }> {
  for (let i = 0; i < 1200 && !pattern.test(output.stdout); i++) await sleep(50)
  assert.match(output.stdout, pattern)
  return output
}

test('a server that listens on all addresses without a URL warns, and uses 127.0.0.1 in its URLs', async () => {
  await using storage = await createStorage()
  await using server = await startProcess(storage, { listen: '0.0.0.0:0' })
  const { host } = new URL(server.url)
  assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  assert.match(server.output.stderr, /listening on all addresses without a url/)
  const challenge = (await fetch(`${server.url}/v2/`)).headers.get('www-authenticate')
  assert.equal(challenge, `Bearer realm="${server.url}/token",service="${host}"`)
  const discovery = (await (await fetch(`${server.url}/.well-known/openid-configuration`)).json()) as { issuer: string }
  assert.equal(discovery.issuer, server.url)
  assert.equal((await clientOf(server.url, await tokenOf(storage)).get('/iam/v2/groups')).status, 200)
})

test('a server that listens on all addresses and has a URL does not warn', async () => {
  await using storage = await createStorage()
  await using server = await startProcess(storage, {
    listen: '0.0.0.0:0',
    args: ['--url', 'https://registry.example.com'],
  })
  assert.equal(server.url, 'https://registry.example.com')
  assert.equal(server.output.stderr, '')
})

test('warns if all private addresses are allowed, but not for a list of some', async () => {
  await using storage = await createStorage()
  for (const [env, warned] of [
    [
      { PINFOLD_ALLOW_PRIVATE_ADDRESSES: 'on' },
      /"level":"warn".*"requests to all private addresses are allowed; list only/,
    ],
    [{ PINFOLD_ISSUERS_PRIVATE: '10.2.0.0/16', PINFOLD_WITNESSES_PRIVATE: 'localhost' }, /^$/],
  ] as const) {
    await using server = await startProcess(storage, { env })
    assert.match(server.output.stderr, warned)
  }
})

test('warns at the start about organizations with the names of views', async () => {
  await using storage = await createStorage()
  {
    await using server = await startProcess(storage)
    const client = clientOf(server.url, await tokenOf(storage))
    for (const name of ['older', 'minimal']) ok(await client.post('/iam/v2/groups/', { name }))
    server.kill('SIGTERM')
    await server.exited
  }
  // The server no longer accepts such a name for a new organization.
  const rename = (groups: string) => `UPDATE ${groups} SET name = 'min-7d' WHERE name = 'older'`
  if (storage.database) {
    await storage.query(rename(`${storage.schema}.groups`))
  } else {
    const db = new DatabaseSync(join(storage.data, 'pinfold.db'))
    db.exec(rename('groups'))
    db.close()
  }
  await using again = await startProcess(storage)
  again.kill('SIGTERM')
  await again.exited
  assert.match(again.output.stderr, /"level":"warn".*the names of views.*"names":\["min-7d"\]/)
})

test('prints the operator link only to an interactive terminal', async () => {
  const shown = async (line: string, env: Record<string, string> = {}) => {
    await using storage = await createStorage()
    const serve = [program, 'serve', ...storage.args, '--listen', '127.0.0.1:0'].map((word) => `'${word}'`).join(' ')
    // `script` runs the command in a terminal, and stops it when `script` ends.
    const child = spawn('script', ['-qefc', `exec ${serve} ${line}`, '/dev/null'], {
      cwd: project,
      env: cleanEnv({ PINFOLD_LOG_LEVEL: 'warn', ...storage.env, ...env }),
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    let output = ''
    for await (const text of child.stdout.setEncoding('utf8')) {
      output += text
      if (output.includes('First steps')) child.kill('SIGTERM')
    }
    // The terminal closes before the server stops.
    await storage.settled()
    assert.match(output, /console http:\S+\/ui\/\r?\nTo open the console as the operator, run: /)
    return /\/ui\/enter#/.test(output)
  }
  assert.equal(await shown(''), true)
  assert.equal(await shown('< /dev/null'), false)
  assert.equal(await shown('', { container: 'oci' }), false)
})
