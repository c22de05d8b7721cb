// `bin/pinfold-node bench/fairness.ts`: latency of one tenant's pulls while another tenant sends its most expensive requests, 16
// at a time. It also checks that a CI that pulls 200 times a second as one service account is not refused. The server is on one
// processor, the load on the other. `--seconds 20` is for each measurement, `--only 'lists of 200 repositories'` for one kind;
// `--kinds 0` is the CI alone. `--checkout DIR` measures the server of another checkout, and `--ci no` leaves out the CI. `--turns`
// also prints processor time, which hardly depends on other work of the machine.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { getPriority, setPriority } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { atOnce } from '../test/support/at-once.ts'
import { clientOf, type Json, roleUids } from '../test/support/pinfold.ts'
import { imageOf, registryClient, types } from '../test/support/registry.ts'
import { httpConnections } from './connections.ts'
import { type Measured, pin, pinLoad, startMeasured } from './cpu-server.ts'
import { type Attack, kinds, manifestNumber, namedManifests } from './fairness-attack.ts'
import { loadCore } from './load.ts'
import { monitorFile, processorMs, takeTurns, usesOf, usesTitle } from './turns.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    only: { type: 'string' },
    kinds: { type: 'string', default: String(Object.keys(kinds).length) },
    lead: { type: 'string', default: '5' },
    checkout: { type: 'string', default: join(import.meta.dirname, '..') },
    ci: { type: 'string', default: 'yes' },
    turns: { type: 'boolean', default: false },
  },
})
const seconds = Number(values.seconds)
/** Time that an attack runs before the measurement begins, so that the burst of its rate limit is used up. */
const leadSeconds = Number(values.lead)
const lanes = 16
const pullsPerSecond = 40
const ciPullsPerSecond = 200

type Tenant = {
  org: string
  repo: string
  identity: string
  token: string
  registryToken: string
  blob: string
  blobSize: number
  digest: string
}

/** Creates an organization with a repository of one image, and a service account that owns the organization. */
async function createTenant(server: Measured, name: string): Promise<Tenant> {
  const client = clientOf(server.url, server.token)
  const made = async (path: string, body: Json): Promise<string> => {
    const answer = await client.post(path, body)
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.body.uid as string
  }
  const org = await made('/iam/v2/groups/', { name })
  const repo = await made(`/registry/v2/repos/${org}`, { name: 'app' })
  const claimMatch = { issuer: 'https://issuer.example.com', subject: name }
  const identity = await made(`/iam/v2/identities/${org}`, { name: 'ci', claimMatch })
  await made(`/iam/v2/roleBindings/${org}`, { identityUid: identity, roleUid: roleUids.owner })
  const token = await server.tokenFor(identity)
  const registryToken = await server.tokenFor(identity, 'registry')
  const registry = registryClient(server.url, registryToken)
  const config = await registry.pushBlob(`${name}/app`, '{"architecture":"amd64","os":"linux"}', types.config)
  const layer = await registry.pushBlob(`${name}/app`, Buffer.alloc(4096, 7))
  const { digest } = await registry.pushManifest(`${name}/app`, JSON.stringify(imageOf(config, [layer])), 'latest')
  return { org, repo, identity, token, registryToken, blob: config.digest, blobSize: config.size, digest }
}

/** `used` is the processor time of the server between the request and the answer of each pull, in milliseconds. */
type Timed = { took: number[]; used: number[]; refused: number; failed: number }

/** Pulls at a fixed rate, even if earlier pulls have no answer yet. The time of a pull is measured from when it was due. */
async function pullSteadily(
  paths: (i: number) => string[],
  of: { url: string; token: string; rate: number; forMs: number },
): Promise<Timed> {
  const width = 64
  const headers = { authorization: `Bearer ${of.token}`, accept: `${types.image}, ${types.index}` }
  const wanted: string[] = []
  const connections = httpConnections(of.url, width, (lane) => ({ path: wanted[lane]!, headers }))
  const free = Array.from({ length: width }, (_, lane) => lane)
  const result: Timed = { took: [], used: [], refused: 0, failed: 0 }
  const pull = async (i: number, due: number): Promise<void> => {
    const lane = free.pop()
    if (lane === undefined) return void result.failed++
    const before = values.turns ? processorMs(server.pid) : 0
    try {
      for (const path of paths(i)) {
        wanted[lane] = path
        await connections.send(lane, lane)
      }
      result.took.push(performance.now() - due)
      if (values.turns) result.used.push(processorMs(server.pid) - before)
    } catch (error) {
      if (/HTTP\/1.1 429/.test(String(error))) result.refused++
      else result.failed++
    }
    free.push(lane)
  }
  const began = performance.now()
  const count = (of.forMs / 1000) * of.rate
  for (let i = 0; i < count; i++) {
    const due = began + (i * 1000) / of.rate
    await sleep(Math.max(0, due - performance.now()))
    void pull(i, due)
  }
  while (free.length < width && performance.now() - began < of.forMs + 60_000) await sleep(5)
  connections.close()
  return result
}

const ms = (value: number) => value.toFixed(1)

function percentile(numbers: readonly number[], share: number): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

const oneByTag = (name: string) => () => [`/v2/${name}/app/manifests/latest`]

function measure(server: Measured, { registryToken: token }: Tenant, forMs = seconds * 1000): Promise<Timed> {
  return pullSteadily(oneByTag('quiet'), { url: server.url, token, rate: pullsPerSecond, forMs })
}

async function measureUnder(server: Measured, quiet: Tenant, attack: Attack) {
  const script = join(import.meta.dirname, 'fairness-attack.ts')
  const child = spawn(process.execPath, [...process.execArgv, script, JSON.stringify(attack)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  pin(child.pid!, loadCore)
  // Both processes share one processor, so the measuring process must have priority over the attacking one.
  setPriority(child.pid!, Math.min(19, getPriority() + 10))
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const exited = once(child, 'exit')
  // The others have to be there, or the budget does not count.
  await measure(server, quiet, leadSeconds * 1000)
  if (values.turns) await takeTurns(server.child)
  const timed = await measure(server, quiet)
  const turns = values.turns ? await takeTurns(server.child) : []
  child.stdin.end()
  await exited
  return { timed, turns, answers: JSON.parse(text) as Record<string, number> }
}

/** Requests of docker, containerd and crane for a pull, in turn. A GET replaces each HEAD. */
function clientPulls({ digest, blob }: Tenant): (i: number) => string[] {
  const of = (path: string) => `/v2/ci/app/${path}`
  const scope = '/token?service=pinfold&scope=repository:ci/app:pull'
  const [tag, manifest, config] = [of('manifests/latest'), of(`manifests/${digest}`), of(`blobs/${blob}`)]
  const docker = [scope, tag, manifest, config]
  const containerd = [scope, tag, manifest, manifest, config]
  const crane = [scope, tag, config]
  return (i) => [docker, containerd, crane][i % 3]!
}

/** A CI that pulls 200 times a second, and the pulls of another tenant meanwhile. */
async function measureCi(): Promise<void> {
  const [pulled, beside] = await Promise.all([
    pullSteadily(clientPulls(ci), {
      url: server.url,
      token: ci.registryToken,
      rate: ciPullsPerSecond,
      forMs: seconds * 1000,
    }),
    measure(server, quiet),
  ])
  const besides = `pulls of another tenant p99 ${ms(percentile(beside.took, 0.99))} ms`
  console.log(
    `\nCI, ${ciPullsPerSecond} pulls a second for ${seconds} s: ${pulled.took.length} done, ${pulled.refused} refused, ${pulled.failed} failed; ${besides}.`,
  )
}

const spread = (numbers: readonly number[]) => [0.5, 0.99, 1].map((one) => ms(percentile(numbers, one))).join(', ')
const used: string[] = []

pinLoad()
await using server = await startMeasured(values.checkout, values.turns ? monitorFile : undefined)
const [quiet, noisy, ci] = [
  await createTenant(server, 'quiet'),
  await createTenant(server, 'noisy'),
  await createTenant(server, 'ci'),
]
const client = clientOf(server.url, server.token)
for (let i = 0; i < 400; i++) await client.post(`/registry/v2/repos/${noisy.org}`, { name: `image-${i}` })
const pushing = registryClient(server.url, noisy.registryToken)
await atOnce(8, namedManifests, (n) => pushing.pushManifest('noisy/app', manifestNumber(noisy, n)))
await measure(server, quiet, 3000)
const calm = await measure(server, quiet)
const calmP99 = percentile(calm.took, 0.99)
const bound = 3 * calmP99 + 20
console.log(
  `\nQuiet: ${ms(percentile(calm.took, 0.5))} ms, p99 ${ms(calmP99)} ms, so at most ${ms(bound)} ms are wanted.\n`,
)
console.log(
  '| 16 at a time | pulls of the other, ms | p99, ms | worst, ms | pulls refused or failed | how the 16 were answered |',
)
console.log('| --- | --- | --- | --- | --- | --- |')
const chosen = Object.keys(kinds).filter(
  (kind) => values.only === undefined || kind === values.only,
) as Attack['kind'][]
for (const kind of chosen.slice(0, Number(values.kinds))) {
  const { timed, turns, answers } = await measureUnder(server, quiet, { url: server.url, kind, lanes, ...noisy })
  const p99 = percentile(timed.took, 0.99)
  const figures = [
    ms(percentile(timed.took, 0.5)),
    `**${ms(p99)}**${p99 > bound ? ' (too much)' : ''}`,
    ms(Math.max(...timed.took)),
  ]
  const said = Object.entries(answers).map(([status, count]) => `${count} × ${status}`)
  console.log(`| ${[kind, ...figures, timed.refused + timed.failed, said.join(', ')].join(' | ')} |`)
  if (values.turns) used.push(`| ${[kind, ...[...usesOf(turns), timed.used].map(spread)].join(' | ')} |`)
  await sleep(3000)
}
if (values.turns) console.log(`\n${usesTitle}\n${used.join('\n')}`)
if (values.ci === 'yes') await measureCi()
