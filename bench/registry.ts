// `bin/pinfold-node bench/registry.ts`: compares the registry as `npm start` runs it, with authentication, with CNCF distribution
// without authentication, in the same rounds. Needs wrk, curl, nginx, sha256sum, taskset, and `registry`
// (github.com/distribution/distribution/v3/cmd/registry) on the PATH. If the variable `ZOT` names a binary of zot
// (https://zotregistry.dev), it is measured too, also without authentication. Defaults: `--rounds 7 --tags 100000 --records
// 1000000 --mib 1024`.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { appendFileSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { atOnce } from '../test/support/at-once.ts'
import { interleave, median, serverCore, wrk } from './load.ts'
import { seedHistory } from './seed-history.ts'

const root = join(import.meta.dirname, '..')
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    tags: { type: 'string', default: '100000' },
    records: { type: 'string', default: '1000000' },
    mib: { type: 'string', default: '1024' },
  },
})
const rounds = Number(values.rounds)
const tags = Number(values.tags)
const folder = mkdtempSync(join(tmpdir(), 'pinfold-bench-'))
const children: ChildProcess[] = []
const ports = { distribution: 18_101, nginx: 18_102, zot: 18_103 }
/** Numbers of tags of the test repositories, since some registries are slower with larger ones. */
const sizes = { few: 10, many: 2000 }
const manifestType = 'application/vnd.oci.image.manifest.v1+json'

type Target = { url: string; token: string; pid: number }

async function start(command: string[], ready: () => Promise<boolean> | boolean): Promise<ChildProcess> {
  const log = openSync(join(folder, 'server.log'), 'a')
  const child = spawn('taskset', ['-c', serverCore, ...command], { cwd: root, stdio: ['ignore', log, log] })
  children.push(child)
  for (let tries = 0; !(await ready()); tries++) {
    if (tries > 200)
      throw new Error(`${command[0]} did not start:\n${readFileSync(join(folder, 'server.log'), 'utf8')}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return child
}

const answers = (url: string) => async () => {
  try {
    return (await fetch(url)).status < 500
  } catch {
    return false
  }
}

async function startPinfold(): Promise<Target> {
  const data = join(folder, 'pinfold')
  await seedHistory(data, Number(values.records))
  const url = 'http://127.0.0.1:18100'
  const command = [join(root, 'bin/pinfold'), 'serve', '--data', data, '--listen', '127.0.0.1:18100']
  const child = await start(command, answers(`${url}/readyz`))
  const args = ['token', '--data', data, '--audience', 'registry']
  const token = spawnSync(join(root, 'bin/pinfold'), args, { encoding: 'utf8' }).stdout.trim()
  return { url, token, pid: child.pid! }
}

async function startDistribution(): Promise<Target> {
  const file = join(folder, 'distribution.yml')
  writeFileSync(
    file,
    `version: 0.1
log: {level: info}
storage:
  filesystem: {rootdirectory: ${join(folder, 'distribution')}}
  delete: {enabled: true}
http: {addr: 127.0.0.1:${ports.distribution}, secret: bench}
`,
  )
  const url = `http://127.0.0.1:${ports.distribution}`
  const child = await start(['registry', 'serve', file], answers(`${url}/v2/`))
  return { url, token: 'none', pid: child.pid! }
}

/** As it is without a configuration of its own but for the place and the port. */
async function startZot(): Promise<Target | undefined> {
  const { ZOT } = process.env
  if (!ZOT) return undefined
  const file = join(folder, 'zot.json')
  const http = { address: '127.0.0.1', port: String(ports.zot) }
  const config = { distSpecVersion: '1.1.0', storage: { rootDirectory: join(folder, 'zot') }, http }
  writeFileSync(file, JSON.stringify({ ...config, log: { level: 'info' } }))
  const url = `http://127.0.0.1:${ports.zot}`
  const child = await start([ZOT, 'serve', file], answers(`${url}/v2/`))
  return { url, token: 'none', pid: child.pid! }
}

async function startNginx(): Promise<string> {
  const file = join(folder, 'nginx.conf')
  mkdirSync(join(folder, 'static'))
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log; user root;
events {}
http { access_log off; sendfile on; server { listen 127.0.0.1:${ports.nginx}; root ${folder}/static; } }
`,
  )
  const url = `http://127.0.0.1:${ports.nginx}`
  await start(['nginx', '-c', file, '-p', folder], answers(url))
  return url
}

async function put(target: Target, path: string, body: Buffer | string, type: string): Promise<void> {
  const headers = { authorization: `Bearer ${target.token}`, 'content-type': type }
  const res = await fetch(target.url + path, { method: 'PUT', headers, body: body as string })
  if (!res.ok) throw new Error(`${path}: ${res.status} ${await res.text()}`)
  await res.arrayBuffer()
}

async function startUpload(target: Target, repo: string): Promise<string> {
  // While a program ran and nothing else, the server may have closed the connection that fetch would use again.
  await new Promise((resolve) => setTimeout(resolve, 50))
  const headers = { authorization: `Bearer ${target.token}` }
  const res = await fetch(`${target.url}/v2/${repo}/blobs/uploads/`, { method: 'POST', headers })
  if (res.status !== 202) throw new Error(await res.text())
  return new URL(res.headers.get('location')!, target.url).href
}

const digestOf = (content: Buffer | string) => `sha256:${createHash('sha256').update(content).digest('hex')}`

/** The same image for all servers: a configuration, one small layer, and two manifests that differ in an annotation. */
function image(): { blobs: Buffer[]; manifests: string[] } {
  const config = Buffer.from('{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}')
  const layer = Buffer.alloc(4096, 7)
  const of = (mediaType: string, content: Buffer) => ({ mediaType, digest: digestOf(content), size: content.length })
  const manifests = ['one', 'two'].map((title) =>
    JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      config: of('application/vnd.oci.image.config.v1+json', config),
      layers: [of('application/vnd.oci.image.layer.v1.tar', layer)],
      annotations: { 'org.opencontainers.image.title': title },
    }),
  )
  return { blobs: [config, layer], manifests }
}

async function fill(target: Target, repo: string, count: number): Promise<void> {
  const { blobs, manifests } = image()
  for (const blob of blobs) {
    const location = await startUpload(target, repo)
    const url = new URL(location)
    url.searchParams.set('digest', digestOf(blob))
    await put(target, url.pathname + url.search, blob, 'application/octet-stream')
  }
  await atOnce(16, count, (i) => {
    return put(target, `/v2/${repo}/manifests/t${String(i).padStart(7, '0')}`, manifests[0]!, manifestType)
  })
}

/** Pushes the two manifests in turn to `count` tags, so that nearly every push updates a tag. */
function moveScript(repo: string, moving: number): string {
  const file = join(folder, `move-${repo.replace('/', '-')}.lua`)
  const [one, two] = image().manifests
  writeFileSync(
    file,
    `local bodies = {[==[${one}]==], [==[${two}]==]}
local n = 0
request = function()
  n = n + 1
  return wrk.format("PUT", "/v2/${repo}/manifests/" .. string.format("t%07d", n % ${moving}), {["content-type"]="${manifestType}"}, bodies[math.floor(n / ${moving}) % 2 + 1])
end
`,
  )
  return file
}

/** wrk does not send its own -H headers with requests of a script that gives headers. */
function withToken(file: string, token: string): string {
  const own = `${file}.${token.slice(-6)}.lua`
  const text = readFileSync(file, 'utf8').replace(
    '{["content-type"]',
    `{["authorization"]="Bearer ${token}",["content-type"]`,
  )
  writeFileSync(own, text)
  return own
}

function curl(args: readonly string[]): Promise<number> {
  const began = performance.now()
  const child = spawn('taskset', ['-c', '1', 'curl', '-sS', '--fail', '-o', '/dev/null', ...args], { stdio: 'inherit' })
  return new Promise((resolve, reject) => {
    child.once('exit', (code) =>
      code === 0 ? resolve((performance.now() - began) / 1000) : reject(new Error(`curl ${args.at(-1)}`)),
    )
  })
}

async function push(target: Target, file: string, digest: string, repo: string): Promise<number> {
  const url = new URL(await startUpload(target, repo))
  url.searchParams.set('digest', digest)
  const auth = ['-H', `authorization: Bearer ${target.token}`, '-H', 'content-type: application/octet-stream']
  return curl(['-T', file, ...auth, url.href])
}

function residentMiB(pid: number, what: 'VmRSS' | 'VmHWM'): number {
  return Number(new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024
}

function bigFile(name: string, mib: number): { file: string; digest: string } {
  const file = join(folder, name)
  writeFileSync(file, '')
  const hash = createHash('sha256')
  for (let i = 0; i < mib; i++) {
    const chunk = randomBytes(1 << 20)
    hash.update(chunk)
    appendFileSync(file, chunk)
  }
  // Otherwise the next sync of the measured server waits for this file.
  spawnSync('sync')
  return { file, digest: `sha256:${hash.digest('hex')}` }
}

function sha256sum(file: string): number {
  const began = performance.now()
  spawnSync('taskset', ['-c', '1', 'sha256sum', file])
  return (performance.now() - began) / 1000
}

/**
 * A virtual machine may have to ask its host for memory, which costs more than the rest of a push. Memory that is freed here is
 * used again by the next round.
 */
function forgetBlobs(): void {
  spawnSync('find', [
    ...['pinfold', 'distribution', 'zot'].map((name) => join(folder, name)),
    '-size',
    '+32M',
    '-path',
    '*sha256*',
    '-delete',
  ])
}

/** Time of the disk alone: writes and syncs the same file. */
function copyToDisk(file: string): number {
  const began = performance.now()
  spawnSync('taskset', ['-c', '1', 'dd', `if=${file}`, `of=${file}.copy`, 'bs=1M', 'conv=fsync'])
  return (performance.now() - began) / 1000
}

try {
  const ours = await startPinfold()
  const theirs = await startDistribution()
  const zot = await startZot()
  const nginx = await startNginx()
  const targets = { ours, theirs, ...(zot && { zot }) }
  for (const target of [ours, theirs]) await fill(target, 'bench/app', tags)
  for (const target of Object.values(targets)) {
    for (const [name, count] of Object.entries(sizes)) await fill(target, `bench/${name}`, count)
  }
  const { manifests } = image()
  const tag = `t${String(Math.floor(tags / 2)).padStart(7, '0')}`
  // distribution answers 404 if the request does not have the media type.
  const accept = ['-H', `accept: ${manifestType}`]
  const byTag = (target: Target, repo = 'app', name = tag) =>
    wrk(`${target.url}/v2/bench/${repo}/manifests/${name}`, target.token, 2, accept)
  const byDigest = (target: Target) =>
    wrk(`${target.url}/v2/bench/app/manifests/${digestOf(manifests[0]!)}`, target.token, 2, accept)
  // This request is too slow to measure a rate in two seconds, so requests are sent one after the other.
  const statuses = new Set<number>()
  const listOnce = async (target: Target) => {
    const began = performance.now()
    const res = await fetch(`${target.url}/v2/bench/app/tags/list?n=100&last=${tag}`)
    await res.arrayBuffer()
    statuses.add(res.status)
    return 1000 / (performance.now() - began)
  }
  const list = (target: Target) => wrk(`${target.url}/v2/bench/app/tags/list?n=100&last=${tag}`, target.token)
  const scripts = {
    app: moveScript('bench/app', 64),
    few: moveScript('bench/few', sizes.few),
    many: moveScript('bench/many', sizes.many),
  }
  const move = (target: Target, repo: keyof typeof scripts = 'app') =>
    wrk(target.url, target.token, 2, ['-s', withToken(scripts[repo], target.token)])
  const window = (name: string) => {
    const [start, end] = ['2025-01-01T00:00:00.000Z', '2025-01-01T00:16:40.000Z']
    return wrk(`${ours.url}/v2/bench/history/_svc/history/${name}?start=${start}&end=${end}`, ours.token)
  }
  // Before any move: what a load generator cuts off there leaves a tag without a digest, and then no list succeeds.
  const lists = await interleave(Math.min(rounds, 3), {
    list: () => list(ours),
    listTheirs: () => listOnce(theirs),
  })
  const rates = await interleave(rounds, {
    tag: () => byTag(ours),
    tagTheirs: () => byTag(theirs),
    digest: () => byDigest(ours),
    digestTheirs: () => byDigest(theirs),
    move: () => move(ours),
    moveTheirs: () => move(theirs),
    windowLong: () => window('long'),
    windowShort: () => window('short'),
  })
  const inSizes: Record<string, () => number> = {}
  for (const [of, target] of Object.entries(targets)) {
    for (const size of ['few', 'many'] as const) {
      inSizes[`${of} ${size} tag`] = () => byTag(target, size, 't0000005')
      inSizes[`${of} ${size} move`] = () => move(target, size)
    }
  }
  const sized = await interleave(rounds, inSizes)

  const mib = Number(values.mib)
  const times = {
    sum: [] as number[],
    disk: [] as number[],
    push: [] as number[],
    pushTheirs: [] as number[],
    pushZot: [] as number[],
    pull: [] as number[],
    pullNginx: [] as number[],
  }
  for (let round = 0; round < Math.min(rounds, 5); round++) {
    const { file, digest } = bigFile('big', mib)
    times.sum.push(sha256sum(file))
    times.disk.push(copyToDisk(file))
    times.push.push(await push(ours, file, digest, 'bench/app'))
    times.pushTheirs.push(await push(theirs, file, digest, 'bench/app'))
    if (zot) times.pushZot.push(await push(zot, file, digest, 'bench/few'))
    spawnSync('cp', [file, join(folder, 'static/big')])
    spawnSync('sync')
    const auth = ['-H', `authorization: Bearer ${ours.token}`]
    await curl([...auth, `${ours.url}/v2/bench/app/blobs/${digest}`])
    await curl([`${nginx}/big`])
    times.pull.push(await curl([...auth, `${ours.url}/v2/bench/app/blobs/${digest}`]))
    times.pullNginx.push(await curl([`${nginx}/big`]))
    forgetBlobs()
  }
  const before = residentMiB(ours.pid, 'VmRSS')
  writeFileSync(`/proc/${ours.pid}/clear_refs`, '5')
  const eight = Array.from({ length: 8 }, (_, i) => bigFile(`client-${i}`, mib))
  await Promise.all(eight.map(({ file, digest }) => push(ours, file, digest, 'bench/app')))
  const growth = residentMiB(ours.pid, 'VmHWM') - before

  const rate = (value: number) => (value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString('en'))
  const share = (a: number, b: number) => (a / b).toFixed(2)
  const speed = (seconds: readonly number[]) => `${Math.round(mib / median(seconds))} MiB/s`
  const compared = (what: string, us: number, them: number, expected: number) =>
    `| ${what} | ${rate(us)} | ${rate(them)} | **${share(us, them)}** | ${expected} |`
  const sizedRow = (what: string, kind: string, size: keyof typeof sizes) => {
    const all = Object.keys(targets).map((of) => sized[`${of} ${size} ${kind}`]!)
    const others = all.slice(1).flatMap((one) => [rate(one), `**${share(all[0]!, one)}**`])
    return `| ${what} of ${rate(sizes[size])} | ${[rate(all[0]!), ...others].join(' | ')} |`
  }
  const names = ['distribution', ...(zot ? ['zot'] : [])]
  console.log(`
| What, a second | Pinfold | distribution | share | expected |
| --- | --- | --- | --- | --- |
${compared('manifest by tag', rates.tag, rates.tagTheirs, 2.2)}
${compared('manifest by digest', rates.digest, rates.digestTheirs, 1)}
${compared('tag moves', rates.move, rates.moveTheirs, 2)}
${compared(`tags/list n=100 in the middle of ${rate(tags)} (distribution: ${[...statuses].join(', ')})`, lists.list, lists.listTheirs, 5)}
| history window of 1,000 of ${rate(Number(values.records))} records | ${rate(rates.windowLong)} | ${rate(rates.windowShort)} (of 1,000) | ${share(rates.windowLong, rates.windowShort)} | |

| In repositories of so many tags, a second | Pinfold | ${names.flatMap((name) => [name, 'share']).join(' | ')} |
| --- | --- ${names.map(() => '| --- | --- ').join('')}|
${sizedRow('manifest by tag', 'tag', 'few')}
${sizedRow('manifest by tag', 'tag', 'many')}
${sizedRow('tag moves', 'move', 'few')}
${sizedRow('tag moves', 'move', 'many')}

| ${mib} MiB blob | speed | share | of | expected |
| --- | --- | --- | --- | --- |
| sha256sum | ${speed(times.sum)} | | | |
| the disk: dd with fsync | ${speed(times.disk)} | | | |
| push | ${speed(times.push)} | **${share(median(times.sum), median(times.push))}** | sha256sum | 0.8 |
| push to distribution | ${speed(times.pushTheirs)} | ${share(median(times.pushTheirs), median(times.push))} | ours by theirs, at least 0.9 | |
${zot ? `| push to zot | ${speed(times.pushZot)} | ${share(median(times.pushZot), median(times.push))} | ours by zot's | |\n` : ''}| nginx | ${speed(times.pullNginx)} | | | |
| pull | ${speed(times.pull)} | **${share(median(times.pullNginx), median(times.pull))}** | nginx | 0.6 |

Memory grew by ${Math.round(growth)} MiB while eight clients pushed ${mib} MiB each (expected at most 100).
`)
} finally {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}
