// Random tag histories through clients that we did not write, run by hand. Each client pulls the digest that the whole history
// gives, or is refused: bin/pinfold-node test/clients/view-cases.ts --cases 500 [--seed 1] [--only podman,containerd]. The
// clients are crane, oras, regctl, skopeo, podman and containerd, if they are on the PATH, several at a time. The server uses
// PostgreSQL if PINFOLD_TEST_DATABASE names one:
//
//   go install github.com/google/go-containerregistry/cmd/crane@latest    # oras and regctl the same way
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chunks } from '#lib/chunks.ts'
import { atOnce } from '../support/at-once.ts'
import { ok } from '../support/expect.ts'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, startProcess, tokenOf } from '../support/process.ts'
import { oneOf, type Random, randomFrom } from '../support/random.ts'
import { imageOf, registryClient, types } from '../support/registry.ts'
import { judge, type Move } from '../support/view-oracle.ts'
import { byName, folder, image, sh, startContainerd, type Way, write } from './view-ways.ts'

const { values } = parseArgs({
  options: { cases: { type: 'string', default: '500' }, seed: { type: 'string' }, only: { type: 'string' } },
})
const seed = Number(values.seed ?? Date.now() % 1_000_000)
console.log(`--seed ${seed}`)
const random = randomFrom(seed)
const cases = Number(values.cases)
const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]
const begin = Date.now() - 90 * day

type Case = { tag: string; moves: Move[]; view: string; at: number; age?: number; hold: number }

/** Random tag histories for import. Assignments last minutes, hours or days, and some return to an earlier digest. */
function randomMoves(random: Random, digests: readonly string[]): Move[] {
  const moves: Move[] = []
  let time = begin + random.below(48) * hour
  for (let i = 1 + random.below(16); i > 0 && time < Date.now() - hour; i--) {
    const others = digests.filter((one) => one !== moves.at(-1)?.digest)
    moves.push({ time, digest: others[random.below(others.length)]! })
    time += [1 + random.below(90) * minute, random.below(12) * hour + 1, random.below(9) * day + 1][random.below(3)]!
  }
  return moves
}

const pick = <T>(list: readonly T[]): T => oneOf(random, list)
const spelled = (time: number): string =>
  `at-${new Date(time).toISOString().slice(0, 19).replace(/[-:]/g, '').toLowerCase()}z`

/** A view with its parameters. Times are whole seconds. The time of a view with only an age is now. */
function randomView(): Pick<Case, 'view' | 'at' | 'age' | 'hold'> {
  const moment = begin - 3 * day + random.below(92 * 24) * hour + random.below(3600) * 1000
  const at = Math.floor(moment / 1000) * 1000
  const kind = random.below(3)
  if (kind === 0) return { view: spelled(at), at, hold: 0 }
  const [age, hold] = [pick([1, 6, 24, 72, 168, 480, 1200]) * hour, pick([1, 6, 24]) * hour]
  const min = `min-${age / hour}h${hold === 6 * hour ? '' : `_hold-${hold / hour}h`}`
  return kind === 1 ? { view: min, at: Infinity, age, hold } : { view: `${spelled(at)}_${min}`, at, age, hold }
}

await using storage = await createStorage()
await using server = await startProcess(storage, { env: { PINFOLD_LOG_LEVEL: 'error' } })
const { host, origin } = new URL(server.url)
const atRegistry = () => tokenOf(storage, ['--audience', 'registry'])
const operator = clientOf(server.url, await tokenOf(storage))
const org = ok(await operator.post('/iam/v2/groups/', { name: 'acme' }))
ok(await operator.post(`/registry/v2/repos/${org.uid}`, { name: 'app' }))
const pusher = registryClient(origin, await atRegistry())
const digests: string[] = []
for (let i = 0; i < 6; i++) digests.push(await pushTar(`image-${i}`))
const lost = await pushTar('lost')
const contents = { came: new Map(digests.map((digest) => [digest, begin])), quarantined: new Set<string>() }
const gone = `sha256:${createHash('sha256').update('gone').digest('hex')}`
const list = Array.from({ length: cases }, (_, i): Case => {
  return { tag: `case-${i}`, moves: randomMoves(random, [...digests, lost, gone]), ...randomView() }
})
const [repo] = ok(await operator.get(`/registry/v2/repos?uidp.descendants_of=${org.uid}`)).repos
for (const { tag, moves } of list) {
  const records = moves.map(({ time, digest }) => ({ time: new Date(time).toISOString(), digest }))
  ok(await operator.post('/control/v1/tagHistory:import', { repoUid: repo.uid, tags: [{ name: tag, records }] }))
}

await deleteSome()

/** Some images are deleted with the tags that point to them. Some tags are deleted alone, and some of these are created again. */
async function deleteSome(): Promise<void> {
  const remove = (reference: string) => pusher.ok(202, 'DELETE', `${image}/manifests/${reference}`)
  const isDeleted = ({ moves }: Case): boolean => moves.at(-1)!.digest === ''
  await remove(lost)
  for (const { moves } of list) if (moves.at(-1)!.digest === lost) moves.push({ time: Date.now(), digest: '' })
  for (const one of list) {
    const { tag, moves } = one
    if (!isDeleted(one) && random.below(6) === 0) {
      await remove(tag)
      moves.push({ time: Date.now(), digest: '' })
    }
    if (!isDeleted(one) || random.below(2) === 0) continue
    const digest = pick(digests)
    ok(await operator.post(`/registry/v2/tags/${repo.uid}`, { name: tag, digest }))
    moves.push({ time: Date.now(), digest })
  }
}

/** An image that a client can unpack. */
async function pushTar(name: string): Promise<string> {
  write(name, name)
  sh('tar', ['-cf', `${name}.tar`, name])
  const content = readFileSync(join(folder, `${name}.tar`))
  const layer = await pusher.pushBlob(image, content, 'application/vnd.oci.image.layer.v1.tar')
  const rootfs = { type: 'layers', diff_ids: [layer.digest] }
  const about = JSON.stringify({ architecture: 'amd64', os: 'linux', rootfs })
  const config = await pusher.pushBlob(image, about, types.config)
  return (await pusher.pushManifest(image, imageOf(config, [layer]))).digest
}

/** Tokens expire after an hour, and a run may take longer. */
async function scene() {
  const token = await atRegistry()
  const auth = Buffer.from(`_token:${token}`).toString('base64')
  const home = join(folder, 'docker')
  mkdirSync(home, { recursive: true })
  const authfile = write('docker/config.json', JSON.stringify({ auths: { [host]: { auth } } }))
  return { host, mirror: host, token, env: { DOCKER_CONFIG: home }, authfile }
}

/** Clients wait for the server and, if there are more clients than processors, for each other. */
const lanes = 3 * availableParallelism()
/** Number of cases after which the program gets a new token and removes pulled images. */
const atATime = 100

let failed = 0
try {
  using daemon = await startContainerd()
  const only = values.only?.split(',')
  const waysNow = async (): Promise<Way[]> => {
    const now = await scene()
    return [...byName(now), ...daemon.ways(now)].filter(({ client }) => only?.includes(client) ?? true)
  }
  const ways = await waysNow()
  for (const { client, how, version } of ways) {
    const counts = { served: 0, refused: 0, wrong: 0 }
    const began = performance.now()
    for (const some of chunks(list, atATime)) {
      const way = (await waysNow()).find((one) => one.client === client && one.how === how)!
      await atOnce(lanes, some.length, async (i) => {
        const { tag, moves, view, at, age, hold } = some[i]!
        const moment = at === Infinity ? Date.now() : at
        const asked = { tag, at: moment, hold, ...(age !== undefined && { age }) }
        const expected = judge(new Map([[tag, moves]]), contents, asked)
        const { code, digest, all } = await way.pull(view, tag)
        const isRight = typeof expected === 'string' ? code !== 0 : code === 0 && digest === expected.digest
        if (isRight) counts[typeof expected === 'string' ? 'refused' : 'served']++
        else {
          counts.wrong++
          console.error(
            `${client} ${view} ${tag}: ${JSON.stringify(expected)}, and it says ${code} ${digest} ${all.slice(-500)}`,
          )
        }
      })
      for (const out of readdirSync(folder)) if (out.startsWith('out-')) rmSync(join(folder, out), { recursive: true })
    }
    failed += counts.wrong
    const seconds = ((performance.now() - began) / 1000).toFixed(0)
    console.log(`${client} ${version()} by ${how}: ${cases} cases, ${JSON.stringify(counts)} in ${seconds} s`)
  }
  if (ways.length === 0) throw new Error('none of the clients is on the PATH')
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log(`${failed} wrong`)
process.exitCode = failed > 0 ? 1 : 0
