// `bin/pinfold-node bench/deliveries.ts`: deliveries per second to a sink on this machine, and the time from a commit to the
// first attempt. Meanwhile 100,000 events wait for a sink that never answers. Needs taskset.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openDb } from '#db/open.ts'
import { insertEvents } from '#domains/outbox/outbox.store.ts'
import { type Client, clientOf, type Json } from '../test/support/pinfold.ts'
import { cpuSeconds, serverCore } from './load.ts'

const { values } = parseArgs({
  options: {
    queued: { type: 'string', default: '100000' },
    events: { type: 'string', default: '20000' },
    seconds: { type: 'string', default: '10' },
    clients: { type: 'string', default: '4' },
  },
})
const [queued, count, seconds, clients] = (['queued', 'events', 'seconds', 'clients'] as const).map((name) =>
  Number(values[name]),
) as [number, number, number, number]
const root = join(import.meta.dirname, '..')
const data = mkdtempSync(join(tmpdir(), 'pinfold-bench-'))
const rate = (value: number) => Math.round(value).toLocaleString('en')

/** Records when each text of a description first arrived. */
function startSink() {
  const seen = new Map<string, number>()
  let requests = 0
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      requests++
      const found = /"description":"([^"]*)"/.exec(Buffer.concat(chunks).toString())?.[1]
      if (found !== undefined && !seen.has(found)) seen.set(found, performance.now())
      res.end()
    })
  }).listen(0, '127.0.0.1')
  return { server, seen, requests: () => requests }
}

async function startServer(): Promise<{ child: ChildProcess; url: string }> {
  const env = {
    ...process.env,
    PINFOLD_LOG_LEVEL: 'warn',
    PINFOLD_ALLOW_PRIVATE_ADDRESSES: 'on',
    PINFOLD_ALLOW_INSECURE_SINKS: 'on',
  }
  const command = ['-c', serverCore, join(root, 'bin/pinfold'), 'serve', '--data', data, '--listen', '127.0.0.1:0']
  const child = spawn('taskset', command, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const [chunk] = await once(child.stdout, 'data')
  return { child, url: /^ready (\S+)/.exec(String(chunk))![1]! }
}

function operator(url: string): Client {
  const { stdout, stderr, status } = spawnSync(join(root, 'bin/pinfold'), ['token', '--data', data], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`no token: ${stderr}`)
  return clientOf(url, stdout.trim())
}

/** As if they had been committed by requests: each about one of a thousand subjects of the group. */
async function plant(group: string, events: number, mark: string): Promise<void> {
  const db = await openDb({ database: '', file: join(data, 'pinfold.db') })
  const subjects = Array.from({ length: 1000 }, () => `${group}/${randomBytes(8).toString('hex')}`)
  for (let done = 0; done < events; done += 500) {
    const rows = Array.from({ length: Math.min(500, events - done) }, (_, i) => {
      const subject = subjects[(done + i) % subjects.length]!
      return {
        uuid: randomUUID(),
        type: 'dev.pinfold.api.platform.registry.repo.updated.v1',
        audience: 'CUSTOMER',
        source: '/registry/v2/repos',
        subject,
        group,
        actor: `{"subject":"${randomBytes(20).toString('hex')}"}`,
        bodyType: 'pinfold.platform.registry.v2.Repo',
        body: JSON.stringify({
          uid: subject,
          name: 'web',
          description: `${mark}${done + i}`,
          bundles: [],
          aliases: [],
        }),
        createTime: new Date().toISOString(),
      }
    })
    await db.tx((tx) => insertEvents(tx, rows))
  }
  await db.close()
}

const sink = startSink()
await once(sink.server, 'listening')
spawnSync('taskset', ['-cp', '1', String(process.pid)])
let { child, url } = await startServer()
try {
  let client = operator(url)
  const made = async (path: string, body: Json) => (await client.post(path, body)).body.uid as string
  const org = await made('/iam/v2/groups/', { name: 'bench' })
  const [dead, live] = [
    await made(`/iam/v2/groups/${org}`, { name: 'dead' }),
    await made(`/iam/v2/groups/${org}`, { name: 'live' }),
  ]
  const repo = await made(`/registry/v2/repos/${live}`, { name: 'web' })
  const repos = [repo]
  for (let i = 1; i < 64; i++) repos.push(await made(`/registry/v2/repos/${live}`, { name: `web${i}` }))
  const deadOne = await made(`/events/v2/subscriptions/${dead}`, { sink: 'http://127.0.0.1:1/' })
  const { port } = sink.server.address() as AddressInfo
  const liveOne = await made(`/events/v2/subscriptions/${live}`, { sink: `http://127.0.0.1:${port}/` })
  await client.post(`/events/v2/subscriptions/${liveOne}:pause`)
  child.kill('SIGTERM')
  await once(child, 'exit')

  await plant(dead, queued, 'd')
  await plant(live, count, 'l')
  ;({ child, url } = await startServer())
  client = operator(url)
  const waiting = async (uid: string) =>
    Number((await client.get(`/events/v2/subscriptions/${uid}/settings`)).body.waiting)
  const routeBegan = performance.now()
  while ((await waiting(liveOne)) < count) await sleep(100)
  const routed = (count + queued) / ((performance.now() - routeBegan) / 1000)

  const before = sink.requests()
  const cpuBefore = cpuSeconds(child.pid!)
  const began = performance.now()
  const resumed = await client.post(`/events/v2/subscriptions/${liveOne}:resume`)
  if (resumed.status !== 200) throw new Error(resumed.text)
  while (sink.requests() - before < count) await sleep(5)
  const delivered = count / ((performance.now() - began) / 1000)
  while ((await waiting(liveOne)) > 0) await sleep(50)
  const cpuEach = ((cpuSeconds(child.pid!) - cpuBefore) * 1000) / count

  const committed = new Map<string, number>()
  const until = performance.now() + seconds * 1000
  await Promise.all(
    Array.from({ length: clients }, async (_, lane) => {
      for (let i = 0; performance.now() < until; i++) {
        const description = `w${lane}-${i}`
        const own = repos[(lane + i * clients) % repos.length]!
        const answer = await client.patch(`/registry/v2/repos/${own}`, { description })
        if (answer.status !== 200) throw new Error(answer.text)
        committed.set(description, performance.now())
      }
    }),
  )
  while ([...committed.keys()].some((one) => !sink.seen.has(one))) await sleep(50)
  // The first attempt may come before the client has received the answer to its change.
  const waits = [...committed].map(([one, at]) => Math.max(0, sink.seen.get(one)! - at)).sort((a, b) => a - b)
  const at = (share: number) => waits[Math.min(waits.length - 1, Math.floor(waits.length * share))]!.toFixed(1)
  console.log(`
| What | figure | expected |
| --- | --- | --- |
| deliveries a second to one sink, ${rate(count)} events of 1,000 subjects | ${rate(delivered)} | 1,000 |
| the server's processor time for each of them | ${cpuEach.toFixed(2)} ms | |
| from commit to first attempt, ${rate(committed.size / seconds)} changes a second: median | ${at(0.5)} ms | |
| p99 | ${at(0.99)} ms | 250 ms |
| events routed a second, after a start with ${rate(count + queued)} | ${rate(routed)} | |

Waiting for the dead sink all the while: ${rate(await waiting(deadOne))}.
`)
} finally {
  child.kill('SIGKILL')
  sink.server.closeAllConnections()
  sink.server.close()
  rmSync(data, { recursive: true, force: true })
}
