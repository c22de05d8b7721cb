// Upgrade of servers on one PostgreSQL, behind a balancer and under load. The newer version is this build with one more
// expansion, backfill and contraction. The servers are upgraded one by one, rolled back, upgraded again and finished. No request
// may be refused or get a 5xx. To run it by hand:
//   PINFOLD_TEST_DATABASE=postgres://… bin/pinfold-node test/fuzz/upgrade.ts --rate 200 --seconds 5
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { clientOf } from '../support/pinfold.ts'
import { cleanEnv, createStorage, freeAddress, project, runProcess, tokenOf } from '../support/process.ts'
import { digestOf, imageOf, types } from '../support/registry.ts'

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '200' },
    /** Time between two steps of the upgrade. */
    seconds: { type: 'string', default: '5' },
  },
})
const [rate, seconds] = [values.rate, values.seconds].map(Number) as [number, number]
const lameduckMs = 3000
await using storage = await createStorage()
if (storage.database === '') throw new Error('PINFOLD_TEST_DATABASE must name a PostgreSQL')

const newer = makeNewer()
process.once('exit', () => rmSync(newer, { recursive: true, force: true }))

/** Copy of this build with three more migrations and another version. */
function makeNewer(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-newer-'))
  for (const name of ['bin', 'src', 'gen', 'proto', 'package.json', 'CHANGELOG.md', 'docs']) {
    cpSync(join(project, name), join(folder, name), { recursive: true })
  }
  symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'))
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, version: '99.0.0' }))
  const migrations = join(folder, 'src/db/migrations')
  const write = (id: string, body: string) =>
    writeFileSync(
      join(migrations, `${id}.ts`),
      `import { sql } from '../sql.ts'\nimport type { Migration } from '../migrate.ts'\n` +
        `export const migration: Migration = { id: '${id}', ${body} }\nvoid sql\n`,
    )
  write('9001-expand-sizes', 'up: (t) => ["ALTER TABLE tags ADD COLUMN text_size " + t.int]')
  write(
    '9002-backfill-sizes',
    'batch: (tx) => tx.run(sql`UPDATE tags SET text_size = length(name) WHERE id IN (SELECT id FROM tags WHERE text_size IS NULL ORDER BY id LIMIT 500)`)',
  )
  // Change that only the older version needs: here a column that the newer one has brought, so that there is something to drop.
  write('9003-contract-sizes', 'up: () => [`ALTER TABLE tags DROP COLUMN text_size`]')
  const all = join(migrations, 'all.ts')
  const names = ['9001-expand-sizes', '9002-backfill-sizes', '9003-contract-sizes']
  const imports = names.map((id, i) => `import { migration as more${i} } from './${id}.ts'\n`).join('')
  writeFileSync(all, imports + readFileSync(all, 'utf8').replace(/\]\s*$/, '  more0,\n  more1,\n  more2,\n]\n'))
  return folder
}

const balancer = await startBalancer()
const url = `http://${balancer.address}`

type Server = Awaited<ReturnType<typeof start>>

async function start(build: string) {
  const listen = await freeAddress()
  const child = spawn(join(build, 'bin/pinfold'), ['serve', ...storage.args, '--listen', listen], {
    cwd: build,
    env: cleanEnv({
      PINFOLD_LOG_LEVEL: 'warn',
      PINFOLD_URL: url,
      PINFOLD_LEASE_MS: '2000',
      PINFOLD_LAMEDUCK_MS: String(lameduckMs),
      ...storage.env,
    }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  const exited = once(child, 'close')
  process.once('exit', () => child.kill('SIGKILL'))
  const ready = new Promise<void>((resolve) => {
    let out = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text
      if (/^ready /m.test(out)) resolve()
    })
  })
  await Promise.race([ready, exited.then(() => Promise.reject(new Error(`a server has ended: ${log}`)))])
  balancer.add(listen)
  return {
    listen,
    async stop() {
      child.kill('SIGTERM')
      await exited
      balancer.remove(listen)
    },
  }
}

/**
 * Balancer: sends each request to the next server that is ready. Sends none to a server that shuts down, and never repeats a
 * request.
 */
async function startBalancer() {
  const servers = new Map<string, boolean>()
  // A connection that a server closes while it is used again would look like a refusal.
  const agent = new Agent({ keepAlive: false })
  let next = 0
  const look = setInterval(() => {
    for (const address of servers.keys()) {
      const asked = request(`http://${address}/readyz`, { timeout: 500 }, (res) => {
        if (servers.has(address)) servers.set(address, res.resume().statusCode === 200)
      })
      asked.on('error', () => servers.has(address) && servers.set(address, false)).end()
    }
  }, 100)
  look.unref()
  const door = createServer((req, res) => {
    const ready = [...servers].filter(([, isReady]) => isReady).map(([address]) => address)
    const address = ready[next++ % ready.length]
    if (!address) return void res.writeHead(599).end('no server is ready')
    const [host, port] = address.split(':')
    const { method, url: path, headers } = req
    const on = request({ host, port, method, path, headers, agent }, (answer) => {
      res.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(res)
    })
    on.on('error', (error) => (res.headersSent ? res.destroy() : res.writeHead(598).end(String(error))))
    req.pipe(on)
  }).listen(0, '127.0.0.1')
  door.keepAliveTimeout = 60_000
  await once(door, 'listening')
  return {
    address: `127.0.0.1:${(door.address() as AddressInfo).port}`,
    add: (address: string) => servers.set(address, true),
    remove: (address: string) => servers.delete(address),
    close() {
      clearInterval(look)
      door.closeAllConnections()
      door.close()
      agent.destroy()
    },
  }
}

const migrate = (build: string, ...args: string[]) =>
  runProcess(['migrate', ...args, ...storage.args], {
    env: { ...storage.env, PINFOLD_LEASE_MS: '2000' },
    command: join(build, 'bin/pinfold'),
    cwd: build,
  })

assert.equal((await migrate(project)).code, 0)
let servers: Server[] = [await start(project), await start(project)]
const operator = await tokenOf(storage, ['--audience', url])
const client = clientOf(url, operator)
const acme = (await client.post('/iam/v2/groups/', { name: 'acme' })).body.uid as string
const pushToken = await tokenOf(storage, ['--audience', 'registry'])
const headers = { authorization: `Bearer ${pushToken}` }
const tally = new Map<string, number>()
const told = new Map<string, string>()
let isOver = false

async function ask(kind: string, method: string, path: string, body?: string, more: Record<string, string> = {}) {
  const res = await fetch(url + path, { method, headers: { ...headers, ...more }, ...(body !== undefined && { body }) })
  const text = await res.text()
  const key = res.status >= 500 ? `${res.status} ${kind}: ${text.slice(0, 120)}` : `${kind} ${res.status}`
  tally.set(key, (tally.get(key) ?? 0) + 1)
  return res
}

async function pushBlob(repo: string, content: string, mediaType: string) {
  const digest = digestOf(content)
  const path = `/v2/${repo}/blobs/uploads/?digest=${digest}`
  await ask('blob', 'POST', path, content, { 'content-type': 'application/octet-stream' })
  return { digest, mediaType, size: Buffer.byteLength(content) }
}

let turn = 0
async function work(): Promise<void> {
  const i = turn++
  const repo = `acme/r${i % 8}`
  const known = [...told.keys()]
  if (i % 5 < 2 && known.length > 0) return void (await ask('pull', 'GET', `/v2/${known[i % known.length]}`))
  if (i % 5 === 2) {
    return void (await ask('list', 'GET', `/registry/v2/repos?uidp.descendantsOf=${acme}`, undefined, {
      authorization: `Bearer ${operator}`,
    }))
  }
  if (i % 5 === 3) return void (await ask('tags', 'GET', `/v2/${repo}/tags/list`))
  const config = await pushBlob(repo, '{"architecture":"amd64"}', types.config)
  const layer = await pushBlob(repo, randomBytes(32).toString('hex'), types.layer)
  const body = JSON.stringify(imageOf(config, [layer]))
  const put = await ask('push', 'PUT', `/v2/${repo}/manifests/n${i}`, body, { 'content-type': types.image })
  if (put.status === 201) told.set(`${repo}/manifests/n${i}`, digestOf(body))
}

for (let i = 0; i < 24; i++) await work()
const load = (async () => {
  const under = new Set<Promise<void>>()
  for (let due = performance.now(); !isOver; due += 1000 / rate) {
    await sleep(Math.max(0, due - performance.now()))
    // If the machine is too slow for the rate, fewer requests are sent, and the printed rate is lower.
    while (under.size >= 32) await Promise.race(under)
    const one: Promise<void> = work()
      .catch((error: unknown) => {
        const key = `refused: ${(error as { cause?: Error }).cause?.message ?? error}`
        tally.set(key, (tally.get(key) ?? 0) + 1)
      })
      .finally(() => under.delete(one))
    under.add(one)
  }
  await Promise.all(under)
})()

async function replace(build: string, what: string): Promise<void> {
  const before = servers
  servers = []
  for (const old of before) {
    servers.push(await start(build))
    await sleep((seconds * 1000) / 2)
    await old.stop()
  }
  console.log(`${what}: ${[...tally.values()].reduce((sum, n) => sum + n, 0)} requests so far`)
}

const began = performance.now()
await sleep(seconds * 1000)
const expanded = await migrate(newer)
assert.equal(expanded.code, 0, expanded.stderr)
console.log('expanded and filled')
// A server of the older version starts again on a database that the newer version has expanded.
await replace(project, 'older servers again')
await replace(newer, 'upgraded')
await replace(project, 'rolled back')
servers.push(await start(newer))
const early = await migrate(newer, '--finish')
assert.notEqual(early.code, 0, 'finished beside an older server')
await replace(newer, 'upgraded again')
const finished = await migrate(newer, '--finish')
assert.equal(finished.code, 0, finished.stderr)
await sleep(seconds * 1000)
isOver = true
await load
const took = (performance.now() - began) / 1000
for (const [path, digest] of told) {
  const { status, headers: shown } = await fetch(`${url}/v2/${path}`, { method: 'HEAD', headers })
  assert.deepEqual([status, shown.get('docker-content-digest')], [200, digest], path)
}
const sum = [...tally.values()].reduce((all, n) => all + n, 0)
const failed = [...tally].filter(([key]) => /^(?:5\d\d|refused)/.test(key))
console.log(
  `${sum} requests in ${took.toFixed(0)} s (${(sum / took).toFixed(0)} a second), ${told.size} pushes, all there`,
)
for (const [key, n] of tally) console.log(`  ${n} × ${key}`)
for (const server of servers) await server.stop()
balancer.close()
assert.deepEqual(failed, [])
console.log('no 5xx, no refused connection')
