// Forged proofs: proofs with changed characters, removed or reordered lines, or checkpoints of another log or size. Also proofs
// of forks that the log itself has signed, and valid proofs of another statement. Our verifier and the one in Python must reject
// each of them, for the expected reason. To run it by hand:
//   bin/pinfold-node test/fuzz/proofs.ts --n 10000
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Config } from '#config.ts'
import { sequenceLedgers, witnessLedgers } from '#domains/ledger/ledger.job.ts'
import { findWitnessKey } from '#domains/ledger/proofs/cosignatures.store.ts'
import { listLogs, logKeys, readEntries } from '#domains/ledger/proofs/logs.store.ts'
import { parseCheckpoint } from '#lib/tlog/checkpoint.ts'
import {
  cosignLine,
  fromBase64,
  type NoteKey,
  newKeyPair,
  noteKey,
  parseNote,
  parseVkey,
  signatureLine,
  vkeyOf,
} from '#lib/tlog/notes.ts'
import { parsePolicy } from '#lib/tlog/policy.ts'
import { parseProofs } from '#lib/tlog/proof-text.ts'
import { NotProved, provedBy } from '#lib/tlog/tag-proof.ts'
import { runJob } from '../support/background-jobs.ts'
import { onPostgres, startPinfold } from '../support/pinfold.ts'
import { oneOf, randomFrom } from '../support/random.ts'
import { digestOf, plantTag } from '../support/tags.ts'
import { forkedProof, type Known } from './forks.ts'

const { values } = parseArgs({ options: { n: { type: 'string', default: '10000' }, seed: { type: 'string' } } })
const count = Number(values.n)
const seed = Number(values.seed ?? Date.now() % 1_000_000)
console.log(`--seed ${seed}, ${onPostgres ? 'PostgreSQL' : 'SQLite'}`)
const random = randomFrom(seed)
const pick = <T>(list: readonly T[]): T => oneOf(random, list)

await using log = await startPinfold({ allowPrivateAddresses: true, allowInsecureUpstreams: true })
const { host } = new URL(log.url)

type Claim = { digest: string; at: string }
type Genuine = { text: string; seq: number; claim: Claim; isOpen: boolean }

/** An organization with a tag that moves, and the proofs of its moves in logs of several sizes. */
async function proofsOf(name: string) {
  const org = (await log.seed.group('', { name })).uid as string
  const repo = (await log.seed.repo(org, { name: 'app' })).uid as string
  const moves: Claim[] = []
  const move = async () => {
    const { updateTime: at } = await plantTag(log, repo, 'v1', `image ${moves.length}`)
    moves.push({ digest: digestOf(`image ${moves.length}`), at: at as string })
  }
  await move()
  await move()
  await runJob(log.app, sequenceLedgers)
  const get = async (path: string) => (await log.operator.get(`/ledger/${org}/${path}`)).text
  const [key] = parsePolicy(await get('policy')).logs as [NoteKey]
  const genuine: Genuine[] = []
  const read = async () => {
    for (const [seq, claim] of moves.entries()) {
      const text = await get(`repos/${repo}/tags/v1/proof?at=${claim.at}`)
      genuine.push({ text, seq, claim, isOpen: parseProofs(text)!.length === 1 })
    }
  }
  const grow = async (round: number) => {
    await move()
    for (let i = 0; i < 3; i++) await plantTag(log, repo, `other-${round}-${i}`)
    await runJob(log.app, sequenceLedgers)
  }
  return { org, key, moves, genuine, read, grow, get }
}
const [acme, other] = [await proofsOf('acme'), await proofsOf('other')]
await using witness = await startPinfold({ witnessLogs: [acme.key, other.key] })
const own = parseVkey((await witness.anonymous.get('/ledger/witness/key')).text.trim())!
const config: Partial<Config> = log.app.config
config.transparencyLogWitnesses = [{ key: own, url: `${witness.url}/ledger/witness` }]
for (const one of [acme, other]) {
  for (let round = 0; round < 5; round++) {
    await runJob(log.app, witnessLedgers)
    await one.read()
    await one.grow(round)
  }
}
const { genuine, moves } = acme
const texts = genuine.map(({ text }) => text)

const stranger = newKeyPair()
const second = noteKey('second.example', 'witness', stranger.publicKey)
const witnessed = await acme.get('policy')
const logLine = `log ${vkeyOf(acme.key)}`
/** Policies of a verifier: the server's, which needs its witness; one that needs a second witness; and one without witnesses. */
const policies = {
  witnessed,
  both: `${logLine}\nwitness A ${vkeyOf(own)}\nwitness B ${vkeyOf(second)}\ngroup each all A B\nquorum each\n`,
  none: `${logLine}\nquorum none\n`,
}
type Trial = {
  kind: string
  text: string
  claim: Claim
  policy: keyof typeof policies
  /** Pattern for the reason of a refusal. For an accepted proof, the end of the proven time, or an empty text without an end. */
  says: RegExp | string
}

/** Secrets that only the server with the log, or its witness, has. */
async function known(): Promise<{ known: Known; privateWitness: Buffer }> {
  const { db, cipher } = log.app
  const { id, size } = (await listLogs(db, acme.org))[0]!
  const { privateKey } = (await logKeys(db, [id]))[0]!
  const shown = moves.slice(0, -1).map((_, seq) => {
    const { index, extra } = parseProofs(genuine.findLast((one) => one.seq === seq)!.text)![0]!
    return { index, ...(JSON.parse(extra.toString()) as { opening: string; salt: string }) }
  })
  const ofWitness = (await findWitnessKey(witness.app.db))!
  return {
    known: {
      key: acme.key,
      privateKey: cipher.decrypt('ledger-key', privateKey)!,
      entries: await readEntries(db, id, 0, size),
      chain: shown,
      salt: shown[0]!.salt,
    },
    privateWitness: witness.app.cipher.decrypt('ledger-key', ofWitness.privateKey)!,
  }
}
const { known: secrets, privateWitness } = await known()

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/= \n-'
/** The head of each proof in a text: its note, from the origin to the last signature. */
const heads = (text: string): string[] =>
  [...text.matchAll(/^[^\n]+\/ledger\/[\s\S]*?\n\n(?:— [^\n]+\n)+/gm)].map(([head]) => head)
const withHeadsOf = (text: string, from: string): string => {
  const others = heads(from)
  let i = 0
  return heads(text).reduce((sum, head) => sum.replace(head, () => others[i++ % others.length]!), text)
}

/** The last head of each size, and what its witness has signed of it. */
const cosigned = new Map(
  texts.map((text) => {
    const note = parseNote(parseProofs(text)![0]!.checkpoint)!
    const own = note.signatures.filter(({ name }) => name !== acme.key.name)
    return [parseCheckpoint(note.text)!.size, own.map(signatureLine).join('')]
  }),
)
const sizes = [...cosigned.keys()]
const now = Math.floor(Date.now() / 1000)
const notSeen = /lacks the witness signatures/
const wrong = /a signature of the checkpoint is invalid/
type Cosigning = Pick<Trial, 'policy' | 'says'> & { by: string; cosign(head: string, size: number): string }
const cosignings: Cosigning[] = [
  { by: 'nobody', policy: 'witnessed', says: notSeen, cosign: () => '' },
  { by: 'a stranger', policy: 'witnessed', says: notSeen, cosign: (head) => lineBy(second, stranger.privateKey, head) },
  { by: 'one of two', policy: 'both', says: notSeen, cosign: (head) => lineBy(own, privateWitness, head) },
  { by: 'a false name', policy: 'witnessed', says: wrong, cosign: (head) => lineBy(own, stranger.privateKey, head) },
  // Signatures of the witness for the true head of this size, and for another one.
  { by: 'grafts', policy: 'witnessed', says: wrong, cosign: (_, size) => cosigned.get(size)! },
  { by: 'grafts', policy: 'witnessed', says: wrong, cosign: () => cosigned.get(pick(sizes))! },
]
function lineBy(key: NoteKey, privateKey: Uint8Array, head: string): string {
  return cosignLine(head, key, privateKey, now - random.below(1000))
}
const msLater = (time: string, ms: number): string => new Date(Date.parse(time) + ms).toISOString()

/** A proof that only the quorum of the policy refuses; with it, what a policy without witnesses believes of it. */
function fork(): Trial & { untilForked: string } {
  const size = pick(sizes)
  const length = secrets.chain.filter(({ index }) => index < size).length
  const of = random.below(length)
  const [was, next] = [moves[of]!, of + 1 < length ? moves[of + 1]! : undefined]
  const { by, policy, says, cosign } = pick(cosignings)
  const digest = digestOf(randomBytes(8).toString('hex'))
  // Either it has pointed elsewhere, or it has moved on later than it did.
  const isLate = next !== undefined && random.below(2) === 0
  const until = isLate ? msLater(next.at, 1000 + random.below(1_000_000)) : (next?.at ?? '')
  const told = isLate ? { seq: of + 1, size, row: { time: until } } : { seq: of, size, row: { digest } }
  const claim = isLate ? { ...was, at: next.at } : { ...was, digest }
  const text = forkedProof(secrets, told, of, (head) => cosign(head, size))
  return { kind: `fork, cosigned by ${by}`, text, claim, policy, says, untilForked: until }
}

const header = 'c2sp.org/tlog-proof@v1\n'
const firstOf = (text: string): string => header + text.split(header)[1]!

/** A whole genuine proof, of before, for a time or a digest of after what its head has. */
function rewind(): Trial {
  const base = pick(genuine)
  const { text, seq, claim, isOpen } = base
  const policy = 'witnessed'
  const later = pick(moves.slice(seq + 1))
  const at = msLater(later.at, random.below(1_000_000))
  const kind = 'rewind'
  if (random.below(3) === 0) return { kind, text, claim: { digest: later.digest, at }, policy, says: /pointed to/ }
  if (isOpen) return { kind: 'rewind, open', text, claim: { ...claim, at }, policy, says: '' }
  if (random.below(2) === 0) return { kind, text, claim: { ...claim, at }, policy, says: /updated again at/ }
  // Another entry of the tag than the next one, as if nothing had been between.
  const skipped = pick(genuine.filter((one) => one.seq !== seq + 1))
  const both = firstOf(text) + firstOf(skipped.text)
  return { kind: 'rewind, skipping', text: both, claim, policy, says: /does not directly follow/ }
}

const mutations: Record<string, (text: string) => string> = {
  flip: (text) => {
    const position = random.below(text.length - 1)
    return text.slice(0, position) + pick([...letters]) + text.slice(position + 1)
  },
  drop: (text) => {
    const lines = text.split('\n')
    return lines.toSpliced(random.below(lines.length - 1), 1 + random.below(3)).join('\n')
  },
  reorder: (text) => {
    const lines = text.split('\n')
    const [a, b] = [random.below(lines.length), random.below(lines.length)]
    return lines.map((line, i) => (i === a ? lines[b]! : i === b ? lines[a]! : line)).join('\n')
  },
  'heads of another log': (text) => withHeadsOf(text, pick(other.genuine).text),
  'heads of another size': (text) => withHeadsOf(text, pick(texts)),
}

/** In which order a head is signed says nothing, and neither does how the JSON of an `extra` is written, which nobody has signed. */
function sense(text: string): string {
  const inOrder = (lines: string) =>
    lines
      .split(/(?<=\n)/)
      .sort()
      .join('')
  return text.replace(/^(?:— [^\n]+\n)+/gm, inOrder).replace(/^extra (.*)$/gm, (line, encoded: string) => {
    try {
      return JSON.stringify(JSON.parse(fromBase64(encoded)!.toString()))
    } catch {
      return line
    }
  })
}
const good = new Set(texts.map(sense))
const controls: Trial[] = genuine.flatMap(({ text, claim, seq, isOpen }): Trial[] => {
  const says = isOpen ? '' : moves[seq + 1]!.at
  const cosignedTwice = heads(text).reduce((sum, head) => {
    const { text: signed } = parseNote(head)!
    return sum.replaceAll(head, head + cosignLine(signed, second, stranger.privateKey, now))
  }, text)
  return [
    { kind: 'genuine', text, claim, policy: 'witnessed', says },
    { kind: 'genuine', text, claim, policy: 'none', says },
    { kind: 'genuine', text: cosignedTwice, claim, policy: 'both', says },
  ]
})
const trials: Trial[] = []
while (trials.length < count) {
  const kind = pick([...Object.keys(mutations), 'fork', 'fork', 'rewind'])
  if (kind === 'fork') {
    const { untilForked, ...trial } = fork()
    trials.push(trial)
    controls.push({ ...trial, kind: 'fork', policy: 'none', says: untilForked })
  } else if (kind === 'rewind') trials.push(rewind())
  else {
    const { text: base, claim } = pick(genuine)
    const text = mutations[kind]!(base)
    if (!good.has(sense(text))) trials.push({ kind, text, claim, policy: 'witnessed', says: /./ })
  }
}

type Said = { until: string } | { why: string }
const parsed = Object.fromEntries(Object.entries(policies).map(([name, text]) => [name, parsePolicy(text)]))
function ours({ text, claim, policy }: Trial): Said {
  try {
    return { until: provedBy(text, parsed[policy]!, { host, path: 'acme/app', tag: 'v1', ...claim }).until }
  } catch (error) {
    if (!(error instanceof NotProved)) throw error
    return { why: error.message }
  }
}

const script = `
import functools, json, sys
import verify
# Its answer depends on what it is given alone, and most trials have signatures that others have as well.
verify.is_signed = functools.lru_cache(maxsize=None)(verify.is_signed)
said = []
for one in json.load(sys.stdin):
    try:
        said.append({"until": verify.check(one["image"], one["at"], one["text"], one["policy"])[1] or ""})
    except verify.Wrong as why:
        said.append({"why": str(why)})
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        said.append({"why": "the file is not written as it should be"})
print(json.dumps(said))
`
function inPython(all: readonly Trial[]): Said[] {
  const asked = all.map(({ text, claim, policy }) => {
    return { text, image: `${host}/acme/app:v1@${claim.digest}`, at: claim.at, policy: policies[policy] }
  })
  const examples = join(import.meta.dirname, '../../examples/verify-ledger')
  const env = { ...process.env, PYTHONPATH: examples, PYTHONDONTWRITEBYTECODE: '1' }
  const options = { input: JSON.stringify(asked), encoding: 'utf8', env, maxBuffer: 64 << 20 } as const
  const python = spawnSync('python3', ['-c', script], options)
  assert.equal(python.status, 0, python.stderr)
  return JSON.parse(python.stdout) as Said[]
}

const isRight = ({ says }: Trial, said: Said): boolean =>
  'why' in said ? says instanceof RegExp && says.test(said.why) : says === said.until
const all = [...trials, ...controls]
const answers = { ours: all.map(ours), 'the one in Python': inPython(all) }
const byKind = Object.fromEntries([...Map.groupBy(trials, ({ kind }) => kind)].map(([kind, of]) => [kind, of.length]))
console.log(`${trials.length} trials ${JSON.stringify(byKind)}`)
const forks = controls.filter(({ kind }) => kind === 'fork').length
console.log(`${forks} forks that a policy without witnesses has to believe, ${controls.length - forks} genuine proofs`)
let failures = 0
for (const [who, said] of Object.entries(answers)) {
  const odd = all.flatMap((trial, i) => (isRight(trial, said[i]!) ? [] : [{ ...trial, said: said[i]! }]))
  const believed = odd.filter(({ says, said }) => says instanceof RegExp && 'until' in said)
  console.log(`${who}: ${believed.length} believed that must not be, ${odd.length} not answered as they should be`)
  for (const { kind, claim, policy, says, said } of odd.slice(0, 3)) console.log(kind, claim, policy, says, said)
  failures += odd.length
}
assert.equal(failures, 0)
