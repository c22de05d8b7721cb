// Kills `bin/pinfold serve` while clients push tags and background jobs write and sign the logs of several organizations. The
// witnesses are another server and, with `--litewitness PROGRAM`, that program. No acknowledged push may be lost, and each tag
// update must have its proof. Every checkpoint that a reader or a witness has seen must be a prefix of the final log. To run it
// by hand:
//   bin/pinfold-node test/fuzz/log-serve-kills.ts --kills 100 --checkpoints 1000
// It ends when both numbers are reached. It uses PostgreSQL if PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { sql } from '#db/sql.ts'
import { parseCheckpoint } from '#lib/tlog/checkpoint.ts'
import { leafHash, rootHash } from '#lib/tlog/merkle.ts'
import { type NoteKey, parseNote, parseVkey, vkeyOf } from '#lib/tlog/notes.ts'
import { type Policy, parsePolicy } from '#lib/tlog/policy.ts'
import { provedBy } from '#lib/tlog/tag-proof.ts'
import { tileWidth } from '#lib/tlog/tiles.ts'
import { entriesIn, nodesOver, tilePathOf } from '../support/log-tree.ts'
import { type Client, clientOf, startPinfold } from '../support/pinfold.ts'
import { createStorage, freeAddress, type Process, startProcess, tokenOf } from '../support/process.ts'
import { digestOf, imageOf, type RegistryClient, registryClient, types } from '../support/registry.ts'
import { startLitewitness } from './litewitness.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    checkpoints: { type: 'string', default: '1000' },
    logs: { type: 'string', default: '30' },
    litewitness: { type: 'string' },
  },
})
const [kills, checkpoints, logs] = [values.kills, values.checkpoints, values.logs].map(Number) as [
  number,
  number,
  number,
]
const tagsOfEach = 40

await using storage = await createStorage()
const address = await freeAddress()
const url = `http://${address}`
const base = { PINFOLD_URL: url, PINFOLD_LEASE_MS: '1500', PINFOLD_MIGRATE_AT_START: 'on' }
const start = (env: Record<string, string> = {}) => startProcess(storage, { listen: address, env: { ...base, ...env } })

type Push = { tag: string; digest: string; answered: boolean }
type Log = { name: string; org: string; repo: string; key: NoteKey; pushes: Push[] }

async function until<T>(what: string, look: () => Promise<T | undefined | false>, seconds = 60): Promise<T> {
  for (const end = performance.now() + seconds * 1000; performance.now() < end; await sleep(50)) {
    const found = await look().catch(() => undefined)
    if (found !== undefined && found !== false) return found
  }
  throw new Error(`${what}: not within ${seconds} s`)
}

const configs = new Map<string, Awaited<ReturnType<RegistryClient['pushBlob']>>>()
let count = 0
/** Moves a tag to a new image. */
async function push(client: RegistryClient, log: Log, tag = `t${Math.floor(Math.random() * tagsOfEach)}`) {
  const repo = `${log.name}/app`
  const body = JSON.stringify(imageOf(configs.get(log.name)!, [], { annotations: { number: `${count++}` } }))
  const pushed: Push = { tag, digest: digestOf(body), answered: false }
  log.pushes.push(pushed)
  await client.ok(201, 'PUT', `${repo}/manifests/${tag}`, { body, headers: { 'content-type': types.image } })
  pushed.answered = true
  return pushed
}

async function begin(): Promise<{ logs: Log[]; api: Client; client: RegistryClient }> {
  await using server = await start()
  const api = clientOf(url, await tokenOf(storage))
  const client = registryClient(url, await tokenOf(storage, ['--audience', 'registry']))
  const made: Log[] = []
  for (let i = 0; i < logs; i++) {
    const name = `org-${i}`
    const org = (await api.post('/iam/v2/groups/', { name })).body.uid as string
    configs.set(name, await client.pushBlob(`${name}/app`, '{}', types.config))
    const [repo] = (await api.get(`/registry/v2/repos?uidp.children_of=${org}`)).body.repos
    const log: Log = { name, org, repo: repo.uid, key: undefined as never, pushes: [] }
    await push(client, log)
    made.push(log)
  }
  for (const log of made) {
    log.key = await until('the first head', async () => (await policyOf(api, log.org)).logs[0])
  }
  server.kill('SIGTERM')
  await server.exited
  return { logs: made, api, client }
}

async function policyOf(api: Client, org: string): Promise<Policy> {
  const { status, text } = await api.get(`/ledger/${org}/policy`)
  assert.equal(status, 200, text)
  return parsePolicy(text)
}

const { logs: all, api, client } = await begin()
await using witness = await startPinfold({ witnessLogs: all.map(({ key }) => key) })
const own = parseVkey((await witness.anonymous.get('/ledger/witness/key')).text.trim())!
await using litewitness =
  values.litewitness === undefined
    ? undefined
    : await startLitewitness(
        values.litewitness,
        all.map(({ key }) => key),
      )
const witnesses = [`${vkeyOf(own)} ${witness.url}/ledger/witness`, ...(litewitness ? [litewitness.setting] : [])]
const env = {
  PINFOLD_TRANSPARENCY_LOG_WITNESSES: witnesses.join(','),
  PINFOLD_WITNESSES_PRIVATE: '127.0.0.1',
  PINFOLD_ALLOW_INSECURE_UPSTREAMS: 'on',
}

/** Roots that readers and witnesses have seen, by log and by size. */
const seen = new Map<string, Map<string, string>>()
function note(who: string, { origin, size, root }: { origin: string; size: number; root: string }): void {
  if (size === 0) return
  const heads = seen.get(who) ?? new Map<string, string>()
  seen.set(who, heads)
  const at = `${size} ${origin}`
  assert.equal(root, heads.get(at) ?? root, `${who} has seen two heads of ${at}`)
  heads.set(at, root)
}
type Head = { origin: string; size: number; root: string }
/**
 * Reads the latest checkpoints that the witnesses have signed. Returns the number of checkpoints so far, of the witness with
 * fewer.
 */
async function look(): Promise<number> {
  const rows = await witness.app.db.all<Head>(sql`SELECT origin, size, root FROM witnessed_logs`)
  for (const head of rows) note('witness', head)
  for (const head of litewitness?.heads() ?? []) note('litewitness', head)
  const counts = ['witness', ...(litewitness ? ['litewitness'] : [])].map((who) => seen.get(who)?.size ?? 0)
  return Math.min(...counts)
}

async function readCheckpoint({ org }: Log): Promise<void> {
  const { status, text } = await api.get(`/ledger/${org}/checkpoint`)
  if (status !== 200) return
  const { origin, size, root } = parseCheckpoint(parseNote(text)!.text)!
  note('reader', { origin, size, root: root.toString('base64') })
}

/** Requests that continue until the server is killed. */
async function useIt(server: Process): Promise<void> {
  let isGone = false
  void server.exited.then(() => {
    isGone = true
  })
  const pushing = async () => {
    while (!isGone) {
      await push(client, pick(all)).catch(() => {})
      await sleep(10)
    }
  }
  const reading = async () => {
    while (!isGone) {
      await readCheckpoint(pick(all)).catch((error: unknown) => {
        if (error instanceof assert.AssertionError) throw error
      })
      await sleep(10)
    }
  }
  const looking = async () => {
    for (; !isGone; await sleep(15)) await look()
  }
  const killing = async () => {
    const [from, wanted] = [await look(), Math.ceil(Math.random() * logs)]
    // Some kills come before anything is signed. The others come after some checkpoints were witnessed, while the next ones are
    // in progress.
    const isEarly = Math.random() < 0.2
    const end = performance.now() + 30_000
    while (!isEarly && performance.now() < end && (await look()) - from < wanted) await sleep(5)
    await sleep(Math.random() * (isEarly ? 600 : 1200))
    server.kill('SIGKILL')
  }
  await Promise.all([pushing(), pushing(), pushing(), reading(), looking(), killing()])
}
const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!

const warnings = new Map<string, number>()
let [killed, cosigned] = [0, 0]
for (; killed < kills || cosigned < checkpoints; killed++) {
  await using server = await start(env)
  await useIt(server)
  assert.equal((await server.exited).signal, 'SIGKILL', `the server ended by itself: ${server.output.stderr}`)
  for (const line of server.output.stderr.split('\n').filter((one) => one.startsWith('{'))) {
    const { level, message, msg = message, duty = '' } = JSON.parse(line)
    const what = `${level} ${msg} ${duty}`.trim()
    assert.doesNotMatch(what, /a witness contradicts/)
    warnings.set(what, (warnings.get(what) ?? 0) + 1)
  }
  await storage.settled()
  cosigned = await look()
  if ((killed + 1) % 10 === 0) console.log(`${killed + 1} kills, ${cosigned} heads witnessed`)
}

// The next process that signs shows the last signed head to the witnesses.
for (const tag of ['last', 'after']) {
  await using server = await start(env)
  for (const log of all) await push(client, log, tag)
  for (const { name, org, repo } of all) {
    const proof = async () => (await api.get(`/ledger/${org}/repos/${repo}/tags/${tag}/proof`)).status === 200
    await until(`${name} ${tag}`, proof)
  }
  if (tag === 'after') await check()
  server.kill('SIGTERM')
  await server.exited
}

async function check(): Promise<void> {
  const sum = { answered: 0, cut: 0, happened: 0, entries: 0, proofs: 0, heads: 0 }
  for (const log of all) {
    const policy = await policyOf(api, log.org)
    assert.equal(policy.logs.length, 1, 'no log was ended')
    const roots = await rootsOf(log)
    for (const [who, heads] of seen) {
      for (const [at, root] of heads) {
        const [size, origin] = at.split(' ')
        if (origin !== log.key.name) continue
        assert.equal(root, roots.at(Number(size)), `${who} has seen another head of ${at}`)
        sum.heads++
      }
    }
    sum.entries += roots.size
    const known = new Map(log.pushes.map((one) => [one.digest, one]))
    const moves = new Map<string, { digest: string; at: string }[]>()
    for (const tag of new Set(log.pushes.map((one) => one.tag))) {
      const { status, body } = await client.call('GET', `${log.name}/app/_svc/history/${tag}`)
      const history = status === 200 ? (body.history as { digest: string; updateTimestamp: string }[]) : []
      moves.set(
        tag,
        history.map(({ digest, updateTimestamp }) => ({ digest, at: new Date(updateTimestamp).toISOString() })),
      )
      for (const { digest } of history) assert.equal(known.get(digest)?.tag, tag, 'somebody has asked for it')
    }
    const there = new Set([...moves.values()].flat().map(({ digest }) => digest))
    for (const { digest, answered, tag } of log.pushes) {
      if (answered) assert.ok(there.has(digest), `${log.name}:${tag}@${digest} was answered and is gone`)
      sum.answered += answered ? 1 : 0
      sum.cut += answered ? 0 : 1
      sum.happened += !answered && there.has(digest) ? 1 : 0
    }
    assert.equal(roots.size, 1 + there.size, 'each move is one entry, and the first is that of the log')
    moves.delete('after')
    for (const [tag, some] of moves) sum.proofs += await checkProofs(log, policy, tag, some)
  }
  assert.equal((await api.post('/control/v1/ledgerLogs:resume')).body.logs ?? 0, 0, 'no log waits for the operator')
  const { answered, cut, happened, entries, proofs, heads } = sum
  console.log(
    `${killed} kills, ${cosigned} heads of ${logs} logs witnessed: 0 of ${heads} that were seen contradict the last ones; ` +
      `${answered} pushes answered, 0 lost, ${cut} cut off of which ${happened} had happened; ${entries} entries, ${proofs} proofs`,
  )
}

async function checkProofs(
  { name, org, repo }: Log,
  policy: Policy,
  tag: string,
  moves: { digest: string; at: string }[],
) {
  for (const [i, { digest, at }] of moves.entries()) {
    const { text } = await api.get(`/ledger/${org}/repos/${repo}/tags/${tag}/proof?at=${at}`)
    const proved = provedBy(text, policy, { host: address, path: `${name}/app`, tag, digest, at })
    assert.deepEqual([proved.from, proved.until], [at, moves[i + 1]?.at ?? ''])
  }
  return moves.length
}

/** Root of a log at each of its sizes, computed from its entries. */
async function rootsOf({ org, key }: Log) {
  const { text } = await api.get(`/ledger/${org}/checkpoint`)
  const head = parseCheckpoint(parseNote(text)!.text)!
  assert.equal(head.origin, key.name)
  const leaves: Buffer[] = []
  for (let index = 0; index * tileWidth < head.size; index++) {
    const width = Math.min(head.size - index * tileWidth, tileWidth)
    const path = tilePathOf({ kind: 'entries', level: 0, index, width })
    const res = await fetch(`${url}/ledger/${org}/${path}`, { headers: { authorization: `Bearer ${api.token}` } })
    const bundle = Buffer.from(await res.arrayBuffer())
    leaves.push(...entriesIn(bundle).map(leafHash))
  }
  assert.equal(leaves.length, head.size)
  const nodes = nodesOver(leaves)
  const at = (size: number) => rootHash(size, nodes).toString('base64')
  assert.equal(at(head.size), head.root.toString('base64'))
  return { size: head.size, at }
}

if (litewitness) {
  const ends = new Map(litewitness.heads().map(({ origin, size }) => [origin, size]))
  for (const { key } of all) assert.ok((ends.get(key.name) ?? 0) > 1, 'it has signed each log')
}
for (const [what, times] of warnings) console.log(`${times} × ${what}`)
