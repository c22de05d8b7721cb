// Runs Renovate with an alias to a view of seven days, over simulated tag histories. It must propose no image that is younger
// than seven days, and no update may stay pending. To run it by hand, with the folder in which `npm install renovate@latest` was
// run:
//   bin/pinfold-node test/fuzz/renovate.ts --renovate DIR --n 100
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { atOnce } from '../support/at-once.ts'
import { clientOf, type Json, roleUids } from '../support/pinfold.ts'
import { cleanEnv, createStorage, startProcess, tokenOf } from '../support/process.ts'
import { randomFrom } from '../support/random.ts'
import { type RegistryClient, registryClient } from '../support/registry.ts'

const { values } = parseArgs({
  options: { renovate: { type: 'string' }, n: { type: 'string', default: '100' }, seed: { type: 'string' } },
})
const program = join(values.renovate ?? '.', 'node_modules/renovate/dist/renovate.js')
const count = Number(values.n)
const seed = Number(values.seed ?? Date.now() % 1_000_000)
console.log(`--seed ${seed}`)

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const ageMs = 7 * dayMs
const holdMs = 6 * hourMs
const now = Date.now()

type Move = { time: number; digest: string }
type Timeline = {
  name: string
  digests: string[]
  moves: Move[]
  pinned: string
  releases: { tag: string; time: number }[]
}

/** Digest of a tag that has to be seven days old, computed without the code of the product. */
function eligible(moves: readonly Move[]): string | undefined {
  const began = new Map<string, number>()
  for (const [i, { time, digest }] of moves.entries()) {
    const next = moves[i + 1]
    const isShort = next !== undefined && next.time - time < holdMs
    const isRolledBack = next !== undefined && moves.slice(0, i).some((former) => former.digest === next.digest)
    if (!isShort && !isRolledBack && !began.has(digest)) began.set(digest, time)
  }
  return moves.findLast(({ digest }) => (began.get(digest) ?? now) <= now - ageMs)?.digest
}

/** A tag that moves every night or so for sixty days, now and then back, or for a few hours only; and releases with versions. */
function timelineOf(index: number, digests: readonly string[]): Timeline {
  // Random numbers of this lane, so that a seed gives the same results whichever lane is faster.
  const { below: random } = randomFrom(seed * 10_000 + index)
  const moves: Move[] = []
  let time = now - (30 + random(30)) * dayMs - random(24) * hourMs
  let at = 0
  while (time < now - hourMs) {
    const kind = random(10)
    const back = kind === 0 && moves.length > 1 ? moves[random(moves.length - 1)]!.digest : undefined
    const digest = back ?? digests[at++ % digests.length]!
    if (digest !== moves.at(-1)?.digest) moves.push({ time, digest })
    time += kind === 1 ? (1 + random(4)) * hourMs : (18 + random(12 * 24)) * hourMs
  }
  const releases = Array.from({ length: 4 }, (_, i) => ({
    tag: `1.${i}.0`,
    time: now - (40 - i * 12) * dayMs - random(10 * 24) * hourMs,
  }))
  return { name: `t${index}`, digests: [...digests], moves, pinned: moves[0]!.digest, releases }
}

async function seedOne(client: RegistryClient, api: Api, index: number): Promise<Timeline> {
  const path = `acme/t${index}`
  const digests: string[] = []
  for (let i = 0; i < 6; i++) digests.push((await client.pushImage(path)).digest)
  const timeline = timelineOf(index, digests)
  const repoUid = await api.repo(`t${index}`)
  const records = timeline.moves.map(({ time, digest }) => ({ time: new Date(time).toISOString(), digest }))
  const tags: Json[] = [{ name: 'stable', records }]
  for (const [i, { tag, time }] of timeline.releases.entries()) {
    tags.push({ name: tag, records: [{ time: new Date(time).toISOString(), digest: digests[i] }] })
  }
  await api.history(repoUid, tags)
  return timeline
}

type Api = { repo(name: string): Promise<string>; history(repoUid: string, tags: Json[]): Promise<void> }
type Update = { newDigest?: string; newValue?: string; pendingChecks?: boolean; updateType?: string }

/** The Dockerfiles of a project that pins what each timeline began with, and what Renovate proposes for each of them. */
function proposals(host: string, auth: { username: string; password: string }, timelines: readonly Timeline[]) {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-renovate-'))
  try {
    for (const { name, pinned, digests } of timelines) {
      mkdirSync(join(folder, name))
      const lines = [`FROM ${host}/acme/${name}:stable@${pinned}`, `FROM ${host}/acme/${name}:1.0.0@${digests[0]}`]
      writeFileSync(join(folder, name, 'Dockerfile'), `${lines.join('\n')}\n`)
    }
    spawnSync('git', ['init', '-q'], { cwd: folder })
    spawnSync('git', ['add', '-A'], { cwd: folder })
    const config = {
      ...{ enabledManagers: ['dockerfile'], onboarding: false, requireConfig: 'ignored' },
      registryAliases: { [`${host}/acme`]: `${host}/min-7d/acme` },
      hostRules: [{ hostType: 'docker', matchHost: host.split(':')[0], ...auth, insecureRegistry: true }],
    }
    const file = join(folder, '..', `${folder.split('/').at(-1)}.json`)
    writeFileSync(file, JSON.stringify(config))
    const report = `${file}.report`
    const env = {
      ...cleanEnv({ RENOVATE_CONFIG_FILE: file, RENOVATE_REPORT_TYPE: 'file', RENOVATE_REPORT_PATH: report }),
      ...{ LOG_LEVEL: process.env.LOG_LEVEL ?? 'warn', RENOVATE_PLATFORM: 'local', RENOVATE_DRY_RUN: 'lookup' },
    }
    const done = spawnSync(process.execPath, [program], { cwd: folder, env, encoding: 'utf8', maxBuffer: 256 << 20 })
    if (done.status !== 0)
      throw new Error(`Renovate has failed: ${done.stdout.slice(-4000)} ${done.stderr.slice(-4000)}`)
    if (done.stdout !== '') console.log(done.stdout.slice(-2000))
    const { repositories } = JSON.parse(readFileSync(report, 'utf8')) as Json
    rmSync(file)
    rmSync(report)
    return (Object.values(repositories)[0] as Json).packageFiles.dockerfile as Json[]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

await using storage = await createStorage()
await using server = await startProcess(storage, { env: { PINFOLD_LOG_LEVEL: 'error' } })
const operator = clientOf(server.url, await tokenOf(storage))
const made = async (path: string, body: object) => (await operator.post(path, body)).body.uid as string
const org = await made('/iam/v2/groups/', { name: 'acme' })
const identityUid = await made(`/iam/v2/identities/${org}`, {
  name: 'bot',
  claimMatch: { issuer: 'https://issuer.example.com', subject: 'bot' },
})
await made(`/iam/v2/roleBindings/${org}`, { identityUid, roleUid: roleUids.push })
const token = await tokenOf(storage, ['--audience', 'registry', '--identity', identityUid])
const api: Api = {
  async repo(name) {
    const { body } = await operator.get(`/registry/v2/repos?uidp.children_of=${org}&name=${name}`)
    return body.repos[0].uid
  },
  async history(repoUid, tags) {
    const answer = await operator.post('/control/v1/tagHistory:import', { repoUid, tags })
    assert.equal(answer.status, 200, answer.text)
  },
}
const client = registryClient(server.url, token)
const timelines: Timeline[] = []
await atOnce(8, count, async (i) => {
  timelines[i] = await seedOne(client, api, i)
})
const files = proposals(new URL(server.url).host, { username: '_token', password: token }, timelines)

const sum = { proposed: 0, younger: 0, stuck: 0, pending: 0, upToDate: 0, wrong: 0 }
for (const timeline of timelines) {
  const file = files.find(({ packageFile }) => packageFile === `${timeline.name}/Dockerfile`)
  assert.ok(file, `Renovate has not looked at ${timeline.name}`)
  for (const dep of file.deps as Json[]) {
    const updates = (dep.updates ?? []) as Update[]
    sum.pending += updates.filter(({ pendingChecks }) => pendingChecks).length
    const isStable = dep.currentValue === 'stable'
    const releases = timeline.releases.filter(({ time }) => time <= now - ageMs)
    const wanted = isStable ? eligible(timeline.moves) : releases.at(-1)?.tag
    const is = isStable ? timeline.pinned : '1.0.0'
    const proposed = isStable ? updates[0]?.newDigest : updates.find(({ newValue }) => newValue !== '1.0.0')?.newValue
    if (proposed !== undefined) sum.proposed++
    if (wanted === undefined || wanted === is) {
      if (proposed === undefined || proposed === is) sum.upToDate++
      else sum.younger++
    } else if (proposed === undefined) {
      sum.stuck++
      console.log('stuck', timeline.name, dep.currentValue, JSON.stringify(dep.warnings ?? []))
    } else if (proposed !== wanted) {
      sum.wrong++
      console.log('wrong', timeline.name, dep.currentValue, proposed, wanted)
    }
  }
}
console.log(`${count} timelines: ${JSON.stringify(sum)}`)
assert.deepEqual([sum.younger, sum.stuck, sum.pending, sum.wrong], [0, 0, 0, 0])
assert.ok(sum.proposed > 0, 'otherwise nothing was tried')
console.log(`${sum.proposed} updates proposed, none too young, none pending, none stuck`)
