// Proofs that somebody has tampered with: characters flipped, lines dropped and reordered, heads of a fork, of another log or
// of earlier put into them. Both verifiers, ours and the one in Python, have to find out each. By hand:
// bin/pinfold-node test/fuzz/proofs.ts --n 10000. On PostgreSQL when PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Config } from '#config.ts'
import { sequenceLedgers, witnessLedgers } from '#domains/registry/proofs/sequence.duty.ts'
import { type NoteKey, parseVkey } from '#lib/tlog/notes.ts'
import { parsePolicy } from '#lib/tlog/policy.ts'
import { NotProved, provedBy } from '#lib/tlog/tag-proof.ts'
import { runDuty } from '../support/duties.ts'
import { startPinfold } from '../support/pinfold.ts'
import { randomFrom } from '../support/random.ts'
import { digestOf, plantTag } from '../support/tags.ts'

const { values } = parseArgs({ options: { n: { type: 'string', default: '10000' }, seed: { type: 'string' } } })
const count = Number(values.n)
const seed = Number(values.seed ?? Date.now() % 1_000_000)
console.log(`--seed ${seed}`)
const random = randomFrom(seed)
const pick = <T>(list: readonly T[]): T => list[random.below(list.length)]!

await using log = await startPinfold({ allowPrivateAddresses: true, allowInsecureUpstreams: true })
const { host } = new URL(log.url)

/** An organisation with a tag that moves, and the proofs of its first move in logs of several sizes. */
async function proofsOf(name: string, rounds: number) {
  const org = (await log.seed.group('', { name })).uid as string
  const repo = (await log.seed.repo(org, { name: 'app' })).uid as string
  const { updateTime: at } = await plantTag(log, repo, 'v1', 'a')
  await plantTag(log, repo, 'v1', 'b')
  await runDuty(log.app, sequenceLedgers)
  const get = async (path: string) => (await log.operator.get(`/ledger/${org}/${path}`)).text
  const [key] = parsePolicy(await get('policy')).logs as [NoteKey]
  const texts: string[] = []
  const read = async () => texts.push(await get(`repos/${repo}/tags/v1/proof?at=${at}`))
  const grow = async (round: number) => {
    for (let i = 0; i < 3; i++) await plantTag(log, repo, `other-${round}-${i}`)
    await runDuty(log.app, sequenceLedgers)
  }
  return { org, key, at: at as string, texts, read, grow, get, rounds }
}
const [acme, other] = [await proofsOf('acme', 5), await proofsOf('other', 5)]
await using witness = await startPinfold({ witnessLogs: [acme.key, other.key] })
const own = parseVkey((await witness.anonymous.get('/ledger/witness/key')).text.trim())!
const config: Partial<Config> = log.app.config
config.ledgerWitnesses = [{ key: own, url: `${witness.url}/ledger/witness` }]
for (const one of [acme, other]) {
  for (let round = 0; round < one.rounds; round++) {
    await runDuty(log.app, witnessLedgers)
    await one.read()
    await one.grow(round)
  }
}
// A fork: signed with the right key, and seen by no witness.
await acme.read()
const forked = acme.texts.pop()!
const policy = await acme.get('policy')
const parsed = parsePolicy(policy)
const claim = { host, path: 'acme/app', tag: 'v1', digest: digestOf('a'), at: acme.at }
for (const text of acme.texts) provedBy(text, parsed, claim)

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/= \n-'
/** The head of each proof in a text: its note, from the origin to the last signature. */
const heads = (text: string): string[] =>
  [...text.matchAll(/^[^\n]+\/ledger\/[\s\S]*?\n\n(?:— [^\n]+\n)+/gm)].map(([head]) => head)
const withHeadsOf = (text: string, from: string): string => {
  const others = heads(from)
  let i = 0
  return heads(text).reduce((sum, head) => sum.replace(head, () => others[i++ % others.length]!), text)
}
const kinds: Record<string, (text: string) => string> = {
  flip: (text) => {
    const place = random.below(text.length - 1)
    return text.slice(0, place) + pick([...letters]) + text.slice(place + 1)
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
  fork: (text) => withHeadsOf(text, pick([forked, ...other.texts])),
  rewind: (text) => withHeadsOf(text, pick(acme.texts)),
}

/** In which order a head is signed says nothing. */
const inOrder = (text: string): string =>
  text.replace(/^(?:— [^\n]+\n)+/gm, (lines) =>
    lines
      .split(/(?<=\n)/)
      .sort()
      .join(''),
  )
const good = new Set(acme.texts.map(inOrder))
const trials: { kind: string; text: string }[] = []
while (trials.length < count) {
  const kind = pick(Object.keys(kinds))
  const text = kinds[kind]!(pick(acme.texts))
  if (!good.has(inOrder(text))) trials.push({ kind, text })
}
const believed = trials.filter(({ text }) => {
  try {
    provedBy(text, parsed, claim)
    return true
  } catch (error) {
    if (!(error instanceof NotProved)) throw error
    return false
  }
})

const script = `
import functools, json, sys
import verify
# Its answer depends on what it is given alone, and most trials have signatures that others have as well.
verify.is_signed = functools.lru_cache(maxsize=None)(verify.is_signed)
asked = json.load(sys.stdin)
believed = []
for i, text in enumerate(asked["texts"]):
    try:
        verify.check(asked["image"], asked["at"], text, asked["policy"])
        believed.append(i)
    except (verify.Wrong, ValueError, KeyError, IndexError, TypeError, AttributeError):
        pass
print(json.dumps(believed))
`
const examples = join(import.meta.dirname, '../../examples/verify-ledger')
const asked = { image: `${host}/acme/app:v1@${digestOf('a')}`, at: acme.at, policy }
const input = JSON.stringify({ ...asked, texts: [acme.texts[0], ...trials.map(({ text }) => text)] })
const env = { ...process.env, PYTHONPATH: examples, PYTHONDONTWRITEBYTECODE: '1' }
const python = spawnSync('python3', ['-c', script], { input, encoding: 'utf8', env, maxBuffer: 64 << 20 })
assert.equal(python.status, 0, python.stderr)
const theirs = (JSON.parse(python.stdout) as number[]).filter((i) => i > 0).map((i) => trials[i - 1]!)
assert.ok(JSON.parse(python.stdout).includes(0), 'otherwise it believes nothing')
const byKind = Object.fromEntries(
  [...Map.groupBy(trials, ({ kind }) => kind)].map(([kind, some]) => [kind, some.length]),
)
console.log(
  `${trials.length} trials ${JSON.stringify(byKind)}: ours believed ${believed.length}, the one in Python ${theirs.length}`,
)
for (const { kind, text } of [...believed, ...theirs].slice(0, 3)) console.log(kind, text)
assert.deepEqual([believed.length, theirs.length], [0, 0])
