// This server as a witness of logs that others keep.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkpointText } from '#lib/tlog/checkpoint.ts'
import { consistencyProof, leafHash, rootHash } from '#lib/tlog/merkle.ts'
import { newKeyPair, noteKey, parseSignatures, parseVkey, signedBy, signLine } from '#lib/tlog/notes.ts'
import { appended, nodesOf } from '#lib/tlog/tiles.ts'
import { startPinfold } from '../support/pinfold.ts'

const origin = 'log.example/ledger/other'
const pair = newKeyPair()
const key = noteKey(origin, 'log', pair.publicKey)
const leaves = Array.from({ length: 40 }, (_, i) => leafHash(Buffer.from(`entry ${i}`)))
const nodes = nodesOf(new Map([...appended(0, new Map(), leaves)].map(([name, { hashes }]) => [name, hashes])))

const textOf = (size: number, root = rootHash(size, nodes)) => checkpointText({ origin, size, root })
const noted = (text: string, privateKey = pair.privateKey) => `${text}\n${signLine(text, key, privateKey)}`

/** What a log sends whose witness has seen `old` entries. */
function asked(
  old: number,
  size: number,
  note = noted(textOf(size)),
  proof = consistencyProof(old, size, nodes),
): string {
  return `${[`old ${old}`, ...proof.map((hash) => hash.toString('base64'))].join('\n')}\n\n${note}`
}

async function witness() {
  const pinfold = await startPinfold({ witnessLogs: [key] })
  const post = (body: string) => pinfold.anonymous.call('POST', '/ledger/witness/add-checkpoint', body)
  return { pinfold, post }
}

test('a witness signs what goes on from what it has seen, and says when', async () => {
  const { pinfold, post } = await witness()
  await using _ = pinfold
  const own = parseVkey((await pinfold.anonymous.get('/ledger/witness/key')).text.trim())!
  assert.deepEqual([own.kind, own.name], ['witness', `${new URL(pinfold.url).host}/ledger/witness`])
  for (const [old, size] of [
    [0, 3],
    [3, 3],
    [3, 4],
    [4, 39],
    [39, 40],
  ] as const) {
    const answer = await post(asked(old, size))
    assert.equal(answer.status, 200, `${old} to ${size}: ${answer.text}`)
    const signed = signedBy({ text: textOf(size), signatures: parseSignatures(answer.text)! }, own)
    assert.equal(signed.is, 'signed')
    assert.ok(signed.is === 'signed' && Math.abs(signed.seconds - Date.now() / 1000) < 600)
  }
})

test('a witness refuses what contradicts what it has seen, in the words of the protocol', async () => {
  const { pinfold, post } = await witness()
  await using _ = pinfold
  assert.equal((await post(asked(0, 20))).status, 200)
  const fork = Buffer.alloc(32, 9)
  const stranger = noted(textOf(30), newKeyPair().privateKey)
  const other = checkpointText({ origin: 'log.example/unknown', size: 30, root: fork })
  const cases: [string, string, number, RegExp][] = [
    ['another view of what was seen', asked(0, 30), 409, /^20\n$/],
    ['a size that was never seen', asked(10, 30), 409, /^20\n$/],
    ['the same size with another root', asked(20, 20, noted(textOf(20, fork)), []), 409, /^20\n$/],
    ['a fork', asked(20, 30, noted(textOf(30, fork))), 422, /does not lead/],
    ['no proof', asked(20, 30, noted(textOf(30)), []), 422, /does not lead/],
    ['a step back', asked(20, 10, noted(textOf(10)), []), 400, /larger/],
    ['another key', asked(20, 30, stranger), 403, /not signed/],
    ['another log', asked(20, 30, noted(other)), 404, /not one that is witnessed/],
    ['no size', asked(20, 30).replace('old 20', 'old'), 400, /not one of/],
    ['a size that is written otherwise', asked(20, 30).replace('old 20', 'old 020'), 400, /not one of/],
    [
      'too many hashes',
      asked(
        20,
        30,
        noted(textOf(30)),
        Array.from({ length: 64 }, () => fork),
      ),
      400,
      /not one of/,
    ],
    ['no checkpoint', 'old 20\n\n', 400, /not one of/],
    ['nothing', '', 400, /not one of/],
  ]
  for (const [what, body, status, why] of cases) {
    const answer = await post(body)
    assert.equal(answer.status, status, `${what}: ${answer.text}`)
    assert.match(answer.text, why, what)
    if (status === 409) assert.equal(answer.headers.get('content-type'), 'text/x.tlog.size')
  }
  assert.equal((await post('x'.repeat(70_000))).status, 413)
  assert.equal((await pinfold.anonymous.get('/ledger/witness/add-checkpoint')).status, 405)
  // None of it has changed what it has seen.
  assert.equal((await post(asked(20, 40))).status, 200)
})

test('of two requests that go on from the same head, one is signed', async () => {
  const { pinfold, post } = await witness()
  await using _ = pinfold
  const sizes = [10, 20, 30, 40]
  const answers = await Promise.all(sizes.map((size) => post(asked(0, size))))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409])
  const seen = sizes[answers.findIndex(({ status }) => status === 200)]!
  for (const { status, text } of answers) if (status === 409) assert.equal(text, `${seen}\n`)
})

test('a server that witnesses no log has no such address', async () => {
  await using pinfold = await startPinfold()
  assert.equal((await pinfold.anonymous.get('/ledger/witness/key')).status, 404)
  assert.equal((await pinfold.anonymous.call('POST', '/ledger/witness/add-checkpoint', asked(0, 1))).status, 404)
})
