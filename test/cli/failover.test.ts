// A server whose PostgreSQL is unavailable, at the start and later.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { PingService } from '#gen/pinfold/ping/v2/ping_pb.ts'
import { GrpcError, grpcClientOf } from '../support/grpc.ts'
import { pooler } from '../support/pooler.ts'
import {
  cleanEnv,
  createStorage,
  freeAddress,
  program,
  project,
  type TestStorage,
  tokenOf,
} from '../support/process.ts'
import { eventually } from '../support/receiver.ts'
import { startWire } from '../support/wire.ts'

const database = process.env.PINFOLD_TEST_DATABASE ?? ''
const noOptions = { skip: pooler !== '' && 'a pooler refuses options of the connection' }

/** A server whose database connection the test can interrupt, from the start. */
async function start(storage: TestStorage, state: 'open' | 'cut', change: (url: URL) => void = () => {}) {
  const url = new URL(storage.database)
  const wire = await startWire({ host: url.hostname, port: Number(url.port || 5432) })
  wire.set(state)
  Object.assign(url, { hostname: '127.0.0.1', port: String(wire.port) })
  change(url)
  const listen = await freeAddress()
  const args = ['serve', '--data', storage.data, '--database', url.href, '--listen', listen]
  const child = spawn(program, args, { cwd: project, env: cleanEnv({ ...storage.env, PINFOLD_LEASE_MS: '2000' }) })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  }
  const exited = once(child, 'close').then(([code]) => code as number | null)
  const ask = (path: string, headers: Record<string, string> = {}) =>
    new Promise<{ status: number; body: string; retryAfter: string | undefined; type: string }>((resolve, reject) => {
      const req = request(`http://${listen}${path}`, { headers, agent: false }, (res) => {
        let body = ''
        res
          .setEncoding('utf8')
          .on('data', (text: string) => {
            body += text
          })
          .on('end', () => {
            const { 'retry-after': retryAfter, 'content-type': type = '' } = res.headers
            resolve({ status: res.statusCode!, body, retryAfter, type })
          })
      })
      req.on('error', reject).end()
    })
  const answers = (path: string, status: number) =>
    eventually(
      () =>
        Promise.race([
          ask(path).catch(() => undefined),
          exited.then((code) => assert.fail(`exit ${code}: ${output.stderr}`)),
        ]),
      (answer) => answer?.status === status,
    )
  return {
    wire,
    output,
    exited,
    ask,
    answers,
    port: Number(listen.split(':')[1]),
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
      wire.close()
    },
  }
}

suite('server without its database', { skip: database === '' && 'PINFOLD_TEST_DATABASE is not set' }, () => {
  test('waits for the database at the start, returns an error in each entry point’s format, and serves once it is available', async () => {
    await using storage = await createStorage()
    await using server = await start(storage, 'cut')
    await server.answers('/healthz', 200)
    const ready = await server.ask('/readyz')
    assert.deepEqual(
      [ready.status, ready.body],
      [503, 'the server is starting and waits for its database; retry later\n'],
    )
    for (const path of [
      '/v2/',
      '/v2/acme/app/manifests/latest',
      '/token',
      '/iam/v2/groups',
      '/scim/v2/x/Users',
      '/ui/',
    ]) {
      const { status, retryAfter, type, body } = await server.ask(path)
      assert.deepEqual([path, status, retryAfter], [path, 503, '1'])
      const json = JSON.parse(body)
      if (path.startsWith('/v2') || path === '/token') assert.equal(json.errors[0].code, 'UNAVAILABLE')
      else if (path.startsWith('/scim')) assert.deepEqual([type, json.status], ['application/scim+json', '503'])
      else assert.equal(json.code, 14)
    }
    using client = grpcClientOf(server, PingService, undefined)
    const refused = await client.ping({}).catch((error: unknown) => error)
    assert.ok(refused instanceof GrpcError, String(refused))
    assert.deepEqual(
      [refused.code, refused.message],
      [14, 'the server is starting and waits for its database; retry later'],
    )
    assert.equal(server.output.stdout, '')
    server.wire.set('open')
    await server.answers('/readyz', 200)
    await eventually(
      async () => server.output.stdout,
      (text) => /^ready /m.test(text),
    )
    // The same connection of the client continues to work.
    await eventually(
      () => client.ping({}).catch(() => undefined),
      (answer) => answer !== undefined,
    )
    assert.equal(server.output.stderr.match(/waiting for the database/g)?.length, 1)
    server.kill('SIGTERM')
    assert.equal(await server.exited, 0)
  })

  test('waits while the database accepts no writes, and stops on a signal', noOptions, async () => {
    await using storage = await createStorage()
    const readOnly = (url: URL) => url.searchParams.set('options', '-c default_transaction_read_only=on')
    await using server = await start(storage, 'open', readOnly)
    await server.answers('/readyz', 503)
    assert.match(server.output.stderr, /waiting for the database.*read-only/)
    server.kill('SIGTERM')
    assert.equal(await server.exited, 0)
    assert.equal(server.output.stdout, '')
  })

  test('does not wait for errors that a retry does not fix', async () => {
    await using storage = await createStorage()
    await using server = await start(storage, 'open', (url) => {
      url.pathname = '/no_such_database'
    })
    assert.equal(await server.exited, 78)
  })

  test('returns 503 while the database is unavailable, and becomes ready again without a restart', async () => {
    await using storage = await createStorage()
    await using server = await start(storage, 'open')
    await server.answers('/readyz', 200)
    const authorization = `Bearer ${await tokenOf(storage)}`
    server.wire.set('cut')
    await server.answers('/readyz', 503)
    const { status, retryAfter } = await server.ask('/iam/v2/groups', { authorization })
    assert.deepEqual([status, retryAfter !== undefined], [503, true])
    // A health check also gets an answer while the database does not answer. If requests already wait for a connection, the server
    // knows the reason before the time limit of the check. The result of a check lasts for a second.
    server.wire.set('held')
    await sleep(1100)
    const { body } = await server.ask('/readyz')
    assert.match(body, /^the database (did not respond within 2 s|is unavailable)\n$/)
    server.wire.set('open')
    await server.answers('/readyz', 200)
    // Former connections that no longer get answers are replaced.
    const before = server.wire.accepted()
    server.wire.set('moved')
    await eventually(
      async () => server.wire.accepted(),
      (now) => now > before,
    )
    await server.answers('/readyz', 200)
    const lines = server.output.stderr.split('\n').filter((line) => line.includes('"background job failed"'))
    const jobs = lines.map((line) => JSON.parse(line).duty as string)
    assert.ok(jobs.length > 0 && new Set(jobs).size === jobs.length, jobs.join())
  })
})
