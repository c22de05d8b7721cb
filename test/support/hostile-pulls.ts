// Mirrors of hostile upstreams, in one of the mirror modes. The mirrors check and pull, and the result is verified.
import { sql } from '#db/sql.ts'
import { fetchFollowed } from '#domains/mirrors/follows/fetches.job.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { requestHistories } from '#domains/mirrors/follows/histories.job.ts'
import { eventNumbers, sourceNumbers } from '#domains/registry/tags/tag-history.model.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from './background-jobs.ts'
import { ok } from './expect.ts'
import { hostile, isLied, publishSigned, rightPast, type startCanaries } from './hostile-upstreams.ts'
import { captureLog } from './log.ts'
import type { Json } from './pinfold.ts'
import { oneOf, type Random } from './random.ts'
import { digestOf, type RegistryClient, startRegistry } from './registry.ts'
import { telling } from './reported-history.ts'
import { ledgerOf } from './tags.ts'
import { type Fault, localUpstreams, startUpstream } from './upstream.ts'

export const followingModes = ['WATCH', 'ON_DEMAND', 'FULL'] as const
export type Drawn = { kinds: readonly string[]; mode: (typeof followingModes)[number]; random: Random }
/**
 * `problems` are faults of the server. `rows` are rows of the tag history, `told` are reported moves, and `manifests` are stored
 * manifests.
 */
export type Pulled = { problems: string[]; statuses: number[]; rows: number; told: number; manifests: number }

const minute = 60_000
const digestPattern = /^sha256:[0-9a-f]{64}$/

type Canaries = Pick<Awaited<ReturnType<typeof startCanaries>>, 'inner'>

/**
 * Starts a server with a fast clock and a quota of one megabyte for each organization. All upstreams are checked again `rounds`
 * times.
 */
export async function startHostilePulls(canaries: Canaries, rounds: number) {
  let shift = 0
  /** Milliseconds by which the clock moves before each pull, so that pauses of hosts are over. */
  let rested = 0
  const now = (): Date => new Date(Date.now() + shift)
  const registry = await startRegistry({
    ...localUpstreams,
    // Only this address is allowed. The canaries have other addresses.
    upstreamsPrivate: ['127.0.0.1'],
    quotaBytes: 1_000_000,
    clock: now,
    monotonic: () => performance.now() * 1000 + shift + rested,
  })
  const { app } = registry
  const captured = captureLog('error')
  let count = 0

  async function prepare({ kinds, mode, random }: Drawn) {
    const there = await startUpstream()
    const name = `hostile-${count++}`
    const good = publishSigned(there, `1.${random.below(1000)}`, 1 + random.below(100_000))
    const said = new Map<string, number>()
    const faults: Fault[] = [telling(() => rightPast(random, 3))]
    const inner = () => canaries.inner(random)
    for (const kind of kinds) {
      const share = kinds.length > 1 ? oneOf(random, [1, 1, 2, 3]) : 1
      const answer = (fault: Fault) => void faults.unshift((req, res) => random.below(share) === 0 && fault(req, res))
      hostile[kind]!({ there, good, random, inner, answer })
    }
    there.breakWith((req, res) => {
      const [, tag] = /^\/v2\/app\/manifests\/([^/?]+)$/.exec(req.url ?? '') ?? []
      if (req.method === 'HEAD' && tag !== undefined) {
        const { writeHead } = res
        res.writeHead = ((status: number, headers: Json = {}) => {
          const what = `${tag} ${status === 200 ? headers['docker-content-digest'] : status}`
          said.set(what, (said.get(what) ?? 0) + 1)
          return Reflect.apply(writeHead, res, [status, headers])
        }) as typeof writeHead
      }
      return faults.some((fault) => fault(req, res))
    })
    const operator = await registry.as(operatorUid)
    const org = ok(await operator.post('/iam/v2/groups/', { name })).uid as string
    const upstream = ok(await operator.post(`/registry/v2/upstreams/${org}`, { name, url: there.url })).uid
    const repo = ok(await operator.post(`/registry/v2/repos/${org}`, { name: 'app' })).uid as string
    const begun = now().toISOString()
    const tags = oneOf(random, [[], ['1\\.[0-9]+'], [good.tag]])
    const body = { upstreamUid: upstream, path: 'app', mode: `MODE_${mode}`, tags, interval: '300s' }
    ok(await operator.post(`/registry/v2/repos/${repo}/follow`, body))
    const pulled: Pulled = { problems: [], statuses: [], rows: 0, told: 0, manifests: 0 }
    return { there, name: `${name}/app`, good, said, repo, begun, mode, kinds, ...pulled }
  }
  type Scene = Awaited<ReturnType<typeof prepare>>

  async function jobs(): Promise<void> {
    const later = { ...app, log: captured.log }
    for (const job of [followUpstreams, fetchFollowed, requestHistories]) await runJob(later, job)
  }

  async function pull({ name, good, mode, statuses, problems }: Scene, client: RegistryClient): Promise<void> {
    const { image, layer, config, signature, named } = good
    const wanted = [
      ...[good.tag, good.name, image.digest, signature.image.digest, named.image.digest].map(
        (one) => `manifests/${one}`,
      ),
      ...[layer, config, signature.layer, named.config].map(({ digest }) => `blobs/${digest}`),
      `referrers/${image.digest}`,
    ]
    for (const path of wanted) {
      rested += 60 * minute
      // If a blob is invalid, the pull breaks off, since the client has already received the first bytes.
      const answer = await client.call('GET', `${name}/${path}`).catch(() => undefined)
      statuses.push(answer?.status ?? 0)
      if (answer && answer.status >= 500 && ![502, 503].includes(answer.status))
        problems.push(`${path}: ${answer.status}`)
      if (answer?.status !== 200 || path.startsWith('referrers')) continue
      if (mode === 'WATCH') problems.push(`${path}: served`)
      const digest = path.split('/')[1]!
      if (digestPattern.test(digest) && digestOf(answer.bytes) !== digest) {
        problems.push(`${path}: served ${digestOf(answer.bytes)}`)
      }
    }
  }

  /** Checks that the stored content has the right digest and exists at the upstream. */
  async function judgeContents({ there, name, repo, mode, problems }: Scene, client: RegistryClient): Promise<number> {
    const manifests = await app.db.all<{ digest: string; content: Uint8Array }>(sql`
      SELECT m.digest, m.content FROM manifests m JOIN repos r ON r.id = m.repo_id WHERE r.uid = ${repo}`)
    const blobs = await app.db.all<{ digest: string }>(sql`
      SELECT b.digest FROM repo_blobs b JOIN repos r ON r.id = b.repo_id WHERE r.uid = ${repo}`)
    for (const { digest, content } of manifests)
      if (digest !== digestOf(Buffer.from(content))) problems.push(`stored ${digest}`)
    for (const { digest } of blobs) {
      const { bytes } = await client.ok(200, 'GET', `${name}/blobs/${digest}`)
      if (digestOf(bytes) !== digest) problems.push(`${digest} is ${digestOf(bytes)}`)
    }
    const stored = [...manifests, ...blobs].map(({ digest }) => digest)
    problems.push(...stored.filter((digest) => !there.contents.has(digest)).map((digest) => `stored ${digest}`))
    if (mode === 'WATCH' && stored.length > 0) problems.push(`stored ${stored.length} by watching`)
    return manifests.length
  }

  /** Checks that each row has a digest that the upstream gave in a valid answer, and the time of that check. */
  async function judgeLedger({ repo, said, begun, problems }: Scene): Promise<number> {
    const ended = now().toISOString()
    const rows = await ledgerOf(registry, repo)
    const looks = await app.db.all<{ tag: string; time: string; before: string }>(sql`
      SELECT o.tag, o.time, o.checked_before AS before
        FROM tag_observations o JOIN repos r ON r.ledger_id = o.repo_id WHERE r.uid = ${repo}`)
    for (const { tag, time, event, digest, source } of rows) {
      const row = `row ${tag} ${time} ${event} ${digest}`
      const before = looks.find((one) => one.tag === tag && one.time === time)?.before ?? begun
      if (source !== sourceNumbers.upstream) problems.push(`${row} of ${source}`)
      if (!(begun <= before && before <= time && time <= ended)) problems.push(`${row} after ${before}`)
      const isSaid =
        event === eventNumbers.deleted
          ? (said.get(`${tag} 404`) ?? 0) >= 3
          : digestPattern.test(digest) && said.has(`${tag} ${digest}`)
      if (!isSaid) problems.push(`${row}, which nobody said`)
    }
    return rows.length
  }

  async function judgeTold({ repo, kinds, problems }: Scene): Promise<number> {
    const told = await app.db.all<{ time: string; digest: string; before: string }>(sql`
      SELECT m.time, m.digest, m.checked_before AS before
        FROM told_moves m JOIN repos r ON r.ledger_id = m.ledger_id WHERE r.uid = ${repo}`)
    const most = now().toISOString()
    for (const { time, digest, before } of told) {
      const isRight = digestPattern.test(digest) && !isLied(digest) && time <= most && before === ''
      if (!isRight) problems.push(`told ${time} ${digest} ${before}`)
    }
    const [only] = kinds.length === 1 ? kinds : []
    if (only?.includes('wrong') && only.startsWith('tells') && told.length > 0) problems.push(`told ${told.length}`)
    return told.length
  }

  /** Pulls from several upstreams at the same time, each in a separate organization. An upstream with no kinds has no faults. */
  async function pullFrom(drawn: readonly Drawn[]): Promise<Pulled[]> {
    const scenes: Scene[] = []
    for (const one of drawn) scenes.push(await prepare(one))
    const pulls = async () => {
      const client = await registry.registryAs(operatorUid)
      await Promise.all(scenes.map((scene) => pull(scene, client)))
    }
    await jobs()
    await pulls()
    for (let i = 0; i < rounds; i++) {
      shift += 21 * minute
      await jobs()
    }
    await pulls()
    const [client, operator] = [await registry.registryAs(operatorUid), await registry.as(operatorUid)]
    for (const scene of scenes) {
      scene.manifests = await judgeContents(scene, client)
      scene.rows = await judgeLedger(scene)
      scene.told = await judgeTold(scene)
      ok(await operator.delete(`/registry/v2/repos/${scene.repo}/follow`))
      await scene.there[Symbol.asyncDispose]()
    }
    const errors = captured.lines.splice(0).map((line: Json) => `logged ${line.message} ${line.error?.message ?? ''}`)
    scenes[0]!.problems.push(...errors)
    return scenes.map(({ problems, statuses, rows, told, manifests }) => ({
      problems,
      statuses,
      rows,
      told,
      manifests,
    }))
  }

  return { pullFrom, [Symbol.asyncDispose]: () => registry[Symbol.asyncDispose]() }
}
