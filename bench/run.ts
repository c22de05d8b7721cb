// `npm run bench`: measures the server as `npm start` runs it, compares it with ceilings of the same run, and prints the figures.
// Needs wrk, h2load and taskset. Defaults: `--small 1000 --large 1000000 --rounds 7`. `--profiles FOLDER` profiles each kind of
// request afterwards, because a profiler would distort the measurements.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { create, toBinary } from '@bufbuild/protobuf'
import { GetRepoRequestSchema, RepoSchema } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { h2load, interleave, median, serverCore, wrk } from './load.ts'
import { profileOf } from './profile.ts'
import { seed } from './seed.ts'

const root = join(import.meta.dirname, '..')
const { values } = parseArgs({
  options: {
    small: { type: 'string', default: '1000' },
    large: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '7' },
    keep: { type: 'string' },
    profiles: { type: 'string' },
  },
})
const rounds = Number(values.rounds)
const folder = values.keep ?? mkdtempSync(join(tmpdir(), 'pinfold-bench-'))
const children: ChildProcess[] = []

type Running = { url: string; token: string; pid: number; readyMs: number; seeded: { org: string; repo: string } }

async function startChild(
  command: string[],
  readyLine: RegExp,
  env: Record<string, string> = {},
): Promise<{ match: RegExpExecArray; pid: number; ms: number }> {
  const began = performance.now()
  const log = openSync(join(folder, 'server.log'), 'a')
  const child = spawn('taskset', ['-c', serverCore, ...command], {
    cwd: root,
    stdio: ['ignore', 'pipe', log],
    env: { ...process.env, ...env },
  })
  children.push(child)
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout!.on('data', (chunk: Buffer) => {
      text += chunk
      const match = readyLine.exec(text)
      if (match) resolve({ match, pid: child.pid!, ms: performance.now() - began })
    })
    child.once('exit', (code) => reject(new Error(`${command.join(' ')} ended with ${code}`)))
  })
}

/** A server with its own data folder, which is filled once. With `--keep FOLDER`, a later run uses it again. */
async function startPinfold(name: string, count: number, env: Record<string, string> = {}): Promise<Running> {
  const data = join(folder, name)
  const noted = join(folder, `${name}.json`)
  if (!existsSync(noted)) writeFileSync(noted, JSON.stringify(await seed(data, count)))
  const command = [join(root, 'bin/pinfold'), 'serve', '--data', data, '--listen', '127.0.0.1:0']
  const { match, pid, ms } = await startChild(command, /^ready (\S+)$/m, env)
  const token = spawnSync(join(root, 'bin/pinfold'), ['token', '--data', data], { encoding: 'utf8' }).stdout.trim()
  return {
    url: match[1]!,
    token,
    pid,
    readyMs: ms,
    seeded: JSON.parse(readFileSync(noted, 'utf8')) as Running['seeded'],
  }
}

async function stop(pid: number): Promise<void> {
  const child = children.find((one) => one.pid === pid)!
  child.removeAllListeners('exit')
  child.kill('SIGTERM')
  await new Promise((resolve) => child.once('exit', resolve))
}

/** Milliseconds from the command to `ready`: the median of five starts of a server that has run before. */
async function readyAfter(name: string): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < 5; i++) {
    const { pid, readyMs } = await startPinfold(name, 0)
    times.push(readyMs)
    await stop(pid)
  }
  return median(times)
}

function residentMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024
}

async function fetchText(url: string, token: string): Promise<string> {
  const res = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
  if (!res.ok) throw new Error(`${url}: ${await res.text()}`)
  return res.text()
}

/** Follows cursors to the page of the given number. */
async function urlOfPage(list: string, token: string, page: number): Promise<string> {
  const step = Math.floor((page - 1) * 50)
  const first = JSON.parse(await fetchText(`${list}&page_size=1&skip=${step - 1}`, token)) as { nextPageToken: string }
  return `${list}&page_token=${first.nextPageToken}`
}

/** Processor time of one kind of request, on a server without other work. */
async function profile(name: string, load: (server: Running) => void): Promise<string> {
  const into = `--cpu-prof --cpu-prof-dir=${values.profiles} --cpu-prof-name=${name}.cpuprofile`
  const server = await startPinfold('small', 0, { NODE_OPTIONS: into })
  load(server)
  await stop(server.pid)
  return `${name}: ${profileOf(join(values.profiles!, `${name}.cpuprofile`)).join('\n')}\n`
}

/** While wrk runs, this process does not notice that idle connections were closed. */
const noticeClosed = () => new Promise((resolve) => setTimeout(resolve, 50))

async function creates(server: Running, clients: number, seconds: number): Promise<number> {
  await noticeClosed()
  const until = performance.now() + seconds * 1000
  let done = 0
  const client = async (id: number) => {
    for (let i = 0; performance.now() < until; i++) {
      const body = JSON.stringify({ name: `c${id}-${i}-${Math.random().toString(36).slice(2)}` })
      const headers = { authorization: `Bearer ${server.token}` }
      const res = await fetch(`${server.url}/registry/v2/repos/${server.seeded.org}`, { method: 'POST', headers, body })
      if (!res.ok) throw new Error(await res.text())
      await res.arrayBuffer()
      done++
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, id) => client(id)))
  return done / seconds
}

async function commitsPerWrite(
  server: Running,
  work: () => Promise<number>,
): Promise<{ rate: number; commits: number }> {
  const read = async () => {
    await noticeClosed()
    const text = await fetchText(`${server.url}/metrics`, server.token)
    const of = (name: string) => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(text)?.[1] ?? Number.NaN)
    return { commits: of('pinfold_db_commits_total'), transactions: of('pinfold_db_transactions_total') }
  }
  const before = await read()
  const rate = await work()
  const after = await read()
  return { rate, commits: (after.commits - before.commits) / (after.transactions - before.transactions) }
}

function frame(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

mkdirSync(folder, { recursive: true })
const bodies = join(folder, 'bodies')
mkdirSync(bodies, { recursive: true })
try {
  const empty = await startPinfold('empty', 0)
  await new Promise((resolve) => setTimeout(resolve, 2000))
  const idleEmpty = residentMiB(empty.pid)
  await stop(empty.pid)
  const readyEmpty = await readyAfter('empty')
  const small = await startPinfold('small', Number(values.small))
  const large = await startPinfold('large', Number(values.large))
  await new Promise((resolve) => setTimeout(resolve, 2000))
  const idleLarge = residentMiB(large.pid)

  const listOf = (server: Running, order: string) =>
    `${server.url}/registry/v2/repos?uidp.descendants_of=${server.seeded.org}&order_by=${order}`
  const getUrl = `${small.url}/registry/v2/repos/${small.seeded.repo}`
  const getLarge = `${large.url}/registry/v2/repos/${large.seeded.repo}`
  const deep = await urlOfPage(listOf(large, 'name'), large.token, Math.min(10_000, Number(values.large) / 50 - 1))
  // Offsets near the end of the list, and in its middle.
  const [beyond, half] = [Number(values.large) - 100, Math.floor(Number(values.large) / 2)]
  const repoJson = await fetchText(getUrl, small.token)
  writeFileSync(join(bodies, 'get'), repoJson)
  writeFileSync(join(bodies, 'list'), await fetchText(listOf(large, 'name'), large.token))
  const { uid, name, description } = JSON.parse(repoJson) as Record<string, string>
  writeFileSync(
    join(bodies, 'repo.binpb'),
    toBinary(RepoSchema, create(RepoSchema, { uid: uid!, name: name!, description: description! })),
  )
  const request = join(folder, 'get.frame')
  writeFileSync(
    request,
    frame(toBinary(GetRepoRequestSchema, create(GetRepoRequestSchema, { uid: small.seeded.repo }))),
  )
  const ports = [18_091, 18_092]
  const command = [process.execPath, join(root, 'bench/ceilings.ts'), ...ports.map(String), bodies]
  await startChild(command, /ready/)
  const bare = `http://127.0.0.1:${ports[0]}`
  const grpcMethod = `${small.url}/pinfold.platform.registry.v2.ReposService/GetRepo`

  const rates = await interleave(rounds, {
    bareGet: () => wrk(`${bare}/get`, small.token),
    get: () => wrk(getUrl, small.token),
    getLarge: () => wrk(getLarge, large.token),
    bareList: () => wrk(`${bare}/list`, small.token),
    listSmall: () => wrk(listOf(small, 'name'), small.token),
    listLarge: () => wrk(listOf(large, 'name'), large.token),
    listByUid: () => wrk(listOf(large, 'uid'), large.token),
    listDeep: () => wrk(deep, large.token),
    listSkipped: () => wrk(`${listOf(large, 'name')}&skip=${beyond}`, large.token),
    listHalf: () => wrk(`${listOf(large, 'name')}&skip=${half}`, large.token),
    bareGrpc: () => h2load(`http://127.0.0.1:${ports[1]}/bench/Get`, small.token, request),
    grpc: () => h2load(grpcMethod, small.token, request),
  })
  const writes = await interleave(rounds, {
    one: () => creates(small, 1, 2),
    eight: () => creates(small, 8, 2),
  })
  const shared = await commitsPerWrite(small, () => creates(small, 8, 4))
  await stop(large.pid)
  const readyLarge = await readyAfter('large')

  const share = (a: number, b: number) => (a / b).toFixed(2)
  const rate = (value: number) => Math.round(value).toLocaleString('en')
  const { large: count } = values
  const table = `
| What | a second | share | of | expected |
| --- | --- | --- | --- | --- |
| bare node:http, the bytes of Get | ${rate(rates.bareGet)} | | | |
| Get by uid, ${values.small} repos | ${rate(rates.get)} | ${share(rates.get, rates.bareGet)} | bare | 0.35 |
| Get by uid, ${count} repos | ${rate(rates.getLarge)} | ${share(rates.getLarge, rates.get)} | Get at ${values.small} | |
| bare node:http, the bytes of List | ${rate(rates.bareList)} | | | |
| List of 50 by name with totalCount, ${values.small} repos | ${rate(rates.listSmall)} | ${share(rates.listSmall, rates.bareList)} | bare | 0.12, better 0.15 |
| the same, ${count} repos | ${rate(rates.listLarge)} | ${share(rates.listLarge, rates.listSmall)} | List at ${values.small} | 0.7 |
| the same, by uid | ${rate(rates.listByUid)} | ${share(rates.listByUid, rates.listSmall)} | List at ${values.small} | |
| the same, by name, page 10,000 by cursor | ${rate(rates.listDeep)} | ${share(rates.listDeep, rates.listLarge)} | page 1 | 0.7 |
| the same, by name, after ${beyond.toLocaleString('en')} that are skipped | ${rate(rates.listSkipped)} | ${share(rates.listSkipped, rates.listLarge)} | page 1 | 0.33 |
| the same, by name, after ${half.toLocaleString('en')} that are skipped | ${rate(rates.listHalf)} | ${share(rates.listHalf, rates.listLarge)} | page 1 | |
| bare grpc-js | ${rate(rates.bareGrpc)} | | | |
| gRPC GetRepo | ${rate(rates.grpc)} | ${share(rates.grpc, rates.bareGrpc)} | bare grpc-js | 0.48, better 0.6 |
| durable creates, 1 client | ${rate(writes.one)} | | | |
| durable creates, 8 clients | ${rate(writes.eight)} | ${share(writes.eight, writes.one)} | 1 client | |

Commits for each acknowledged create with 8 clients: ${shared.commits.toFixed(2)}.
Ready after ${Math.round(readyEmpty)} ms with 0 and ${Math.round(readyLarge)} ms with ${count} repos (expected at most 700).
Idle memory: ${Math.round(idleEmpty)} MiB with 0 and ${Math.round(idleLarge)} MiB with ${count} repos (expected at most 105).
`
  console.log(table)
  if (values.profiles) {
    await stop(small.pid)
    const message = `/pinfold.platform.registry.v2.ReposService/GetRepo`
    const kinds: Record<string, (server: Running) => void> = {
      get: (server) => void wrk(`${server.url}/registry/v2/repos/${small.seeded.repo}`, server.token, 10),
      list: (server) => void wrk(listOf(server, 'name'), server.token, 10),
      grpc: (server) => void h2load(`${server.url}${message}`, server.token, request, 10),
    }
    for (const [name, load] of Object.entries(kinds)) console.log(await profile(name, load))
  }
} finally {
  for (const child of children) {
    child.removeAllListeners('exit')
    child.kill('SIGKILL')
  }
  if (!values.keep) rmSync(folder, { recursive: true, force: true })
}
