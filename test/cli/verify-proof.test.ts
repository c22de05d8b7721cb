// Proofs of tags in files, verified by `pinfold tags verify` and by another verifier.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { sequenceLedgers } from '#domains/ledger/ledger.job.ts'
import { parsePolicy } from '#lib/tlog/policy.ts'
import { NotProved, provedBy } from '#lib/tlog/tag-proof.ts'
import { runJob } from '../support/background-jobs.ts'
import { startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { randomFrom } from '../support/random.ts'
import { digestOf, plantTag } from '../support/tags.ts'

const examples = join(import.meta.dirname, '../../examples/verify-ledger')

/** `acme/app:v1` pointed to `a`, then to `b`. Includes proof files for both times. */
async function scene() {
  const closing = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-proofs-'))
  closing.defer(() => rmSync(folder, { recursive: true }))
  const pinfold = closing.use(await startPinfold())
  const org = (await pinfold.seed.group('', { name: 'acme' })).uid as string
  const repo = (await pinfold.seed.repo(org, { name: 'app' })).uid as string
  const times: string[] = []
  for (const image of ['a', 'b']) times.push((await plantTag(pinfold, repo, 'v1', image)).updateTime as string)
  await runJob(pinfold.app, sequenceLedgers)

  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! }
  const cli = (...args: string[]) => run(args, { env })
  const file = async (name: string, ...args: string[]) => {
    const { code, stdout, stderr } = await cli('tags', ...args)
    assert.equal(code, 0, stderr)
    writeFileSync(join(folder, name), stdout)
    return { path: join(folder, name), text: stdout }
  }
  const policy = await file('policy', 'proof-policy', 'acme/app')
  const closed = await file('closed', 'proof', 'acme/app:v1', '--at', times[0]!)
  const open = await file('open', 'proof', 'acme/app:v1')
  const [host, images] = [new URL(pinfold.url).host, [digestOf('a'), digestOf('b')]]
  return { closing, folder, cli, times, host, images, policy, closed, open }
}

type Scene = Awaited<ReturnType<typeof scene>>

function python(...args: string[]) {
  return spawnSync('python3', [join(examples, 'verify.py'), ...args], { encoding: 'utf8' })
}

/** Result of both verifiers, which must be the same. */
async function judged({ cli, policy }: Scene, image: string, at: string, proof: { path: string }) {
  const files = ['--proof', proof.path, '--policy', policy.path]
  const ours = await run(['tags', 'verify', image, '--at', at, ...files], { env: {} })
  const theirs = python(image, at, proof.path, policy.path)
  assert.equal(theirs.status, ours.code, `${image} ${at}: ${theirs.stderr}${ours.stderr}`)
  assert.equal(
    (await cli('tags', 'verify', image, '--at', at, ...files, '--open')).code,
    ours.code === 3 ? 0 : ours.code,
  )
  return ours
}

test('both verifiers give the same result for a proof, offline', async () => {
  const at = await scene()
  await using _ = at.closing
  const { times, host, images, closed, open } = at
  const image = `${host}/acme/app:v1@${images[0]}`
  const proved = await judged(at, image, times[0]!, closed)
  assert.equal(proved.code, 0, proved.stderr)
  assert.match(
    proved.stdout,
    new RegExp(`^acme/app:v1 had the digest ${images[0]}\nfrom ${times[0]} until ${times[1]}\n`),
  )
  assert.equal((await judged(at, `acme/app:v1@${images[0]}`, times[0]!, closed)).code, 0)
  const beginning = await judged(at, `${host}/acme/app:v1@${images[1]}`, times[1]!, open)
  assert.equal(beginning.code, 3)
  assert.match(beginning.stderr, /the proof does not show whether the tag was updated before this time/)

  const wrong: [string, string, { path: string }, RegExp][] = [
    [`${host}/acme/app:v1@${images[1]}`, times[0]!, closed, /the tag pointed to another digest, sha256/],
    [`${host}/acme/app:v2@${images[0]}`, times[0]!, closed, /the proof is about another tag, acme\/app:v1/],
    [`other.example/acme/app:v1@${images[0]}`, times[0]!, closed, /the log belongs to/],
    [image, times[1]!, closed, /the tag was updated again at/],
    [image, '2020-01-01T00:00:00.000Z', closed, /was assigned to this digest at/],
    [image, times[0]!, at.policy, /must have one or two proofs/],
  ]
  for (const [name, time, proof, why] of wrong) {
    const refused = await judged(at, name, time, proof)
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, why)
  }
})

test('distinguishes wrong usage from a wrong proof', async () => {
  const at = await scene()
  await using _ = at.closing
  const { cli, times, host, images, closed, policy } = at
  const image = `${host}/acme/app:v1@${images[0]}`
  const bad = join(at.folder, 'bad')
  writeFileSync(bad, 'quorum nobody\n')
  const wrong: [string[], number, RegExp][] = [
    [['tags', 'verify', image], 64, /give --at, --proof and --policy/],
    [['tags', 'verify', '--at', times[0]!], 64, /missing required argument 'image'/],
    [
      ['tags', 'verify', image, '--at', times[0]!, '--proof', closed.path, '--policy', `${bad}s`],
      64,
      /--policy: .*ENOENT/,
    ],
    [['tags', 'verify', image, '--at', times[0]!, '--proof', closed.path, '--policy', bad], 78, /line 1 of the policy/],
    [['tags', 'verify', image, '--at', 'then', '--proof', closed.path, '--policy', policy.path], 64, /--at must be/],
    [
      ['tags', 'verify', 'acme/app', '--at', times[0]!, '--proof', closed.path, '--policy', policy.path],
      64,
      /with tag and digest/,
    ],
    [['tags', 'verify', image, '--repair'], 64, /--repair/],
    [['tags', 'proof', 'acme/app'], 64, /the tag is missing/],
    [['tags', 'proof', 'acme/app:v7'], 1, /had no tag v7/],
  ]
  for (const [args, code, why] of wrong) {
    const answer = await cli(...args)
    assert.equal(answer.code, code, `${args.join(' ')}: ${answer.stderr}`)
    assert.match(answer.stderr, why)
  }
})

test('both verifiers detect each changed character of a proof', async () => {
  const at = await scene()
  await using _ = at.closing
  const { times, host, images, closed, policy } = at
  const random = randomFrom(7)
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/= \n'
  const changed = Array.from({ length: 400 }, () => {
    const position = random.below(closed.text.length - 1)
    const letter = letters[random.below(letters.length)]!
    return closed.text[position] === letter
      ? ''
      : closed.text.slice(0, position) + letter + closed.text.slice(position + 1)
  })
  const lines = closed.text.split('\n')
  const dropped = lines.map((_line, i) => lines.toSpliced(i, 1).join('\n'))
  const all = [...changed, ...dropped.slice(0, -1)].filter((text) => text !== '' && text !== closed.text)
  const parsed = parsePolicy(policy.text)
  const claim = { host, path: 'acme/app', tag: 'v1', digest: images[0]!, at: times[0]! }
  assert.ok(provedBy(closed.text, parsed, claim))
  for (const text of all) assert.throws(() => provedBy(text, parsed, claim), NotProved, text)

  // The other verifier's own arithmetic takes longer.
  const script = `
import json, sys
import verify
asked = json.load(sys.stdin)
believed = 0
for text in asked["texts"]:
    try:
        verify.check(asked["image"], asked["at"], text, asked["policy"])
        believed += 1
    except (verify.Wrong, ValueError, KeyError, IndexError, TypeError, AttributeError):
        pass
print(believed)
`
  const ask = (texts: readonly string[]) => {
    const input = JSON.stringify({
      image: `${host}/acme/app:v1@${images[0]}`,
      at: times[0],
      policy: policy.text,
      texts,
    })
    const env = { ...process.env, PYTHONPATH: examples, PYTHONDONTWRITEBYTECODE: '1' }
    return spawnSync('python3', ['-c', script], { input, encoding: 'utf8', env })
  }
  const some = all.filter((_text, i) => i % 4 === 0)
  const answer = ask([closed.text, ...some])
  assert.equal(answer.stdout, '1\n', answer.stderr)
})

test('for a tag that did not exist, prints the time and the command that shows its history', async () => {
  const { closing, cli } = await scene()
  await using _ = closing
  for (const [args, says] of [
    [
      ['acme/app:none'],
      /^pinfold: no proof was found: acme\/app had no tag none\npinfold: pinfold tags history acme\/app:none shows/,
    ],
    [
      ['acme/app:v1', '--at', '2020-01-01'],
      /^pinfold: no proof was found: acme\/app had no tag v1 at 2020-01-01T00:00:00.000Z\n/,
    ],
  ] as const) {
    const { code, stdout, stderr } = await cli('tags', 'proof', ...args)
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, says)
  }
})
