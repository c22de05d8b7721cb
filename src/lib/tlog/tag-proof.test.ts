import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkpointText } from './checkpoint.ts'
import { inclusionProof, leafHash, rootHash } from './merkle.ts'
import { newKeyPair, noteKey, signLine, vkeyOf } from './notes.ts'
import { parsePolicy } from './policy.ts'
import {
  chainOf,
  commitmentOf,
  entryText,
  logEntryText,
  openingText,
  parseEntry,
  parseOpening,
  saltOf,
} from './tag-entry.ts'
import { NotProved, provedBy, tagProofText } from './tag-proof.ts'
import { appended, nodesOf } from './tiles.ts'

const organization = 'ab'.repeat(20)
const origin = `registry.example/ledger/${organization}`
const [one, two] = [`sha256:${'1'.repeat(64)}`, `sha256:${'2'.repeat(64)}`]
const secret = Buffer.alloc(32, 7)
const pair = newKeyPair()
const key = noteKey(origin, 'log', pair.publicKey)
const policy = parsePolicy(`log ${vkeyOf(key)}\nquorum none\n`)

/** A log in which acme/app:v1 points to one digest, then another, and is then deleted. */
function aLog() {
  const base = { organization, path: 'acme/app', tag: 'v1', previousDigest: '', actor: 'cd'.repeat(20), source: 'oci' }
  const rows = [
    { ...base, event: 'created', digest: one, time: '2026-01-01T00:00:00.000Z', nonce: '00'.repeat(16) },
    { ...base, event: 'moved', digest: two, time: '2026-02-01T00:00:00.000Z', nonce: '01'.repeat(16) },
    { ...base, event: 'deleted', digest: two, time: '2026-03-01T00:00:00.000Z', nonce: '02'.repeat(16) },
  ]
  const salt = saltOf(secret, 'acme/app')
  const texts = [logEntryText(origin, secret)]
  for (const [seq, row] of rows.entries()) {
    const prev = seq === 0 ? '' : leafHash(Buffer.from(texts.at(-1)!)).toString('hex')
    const commitment = commitmentOf(openingText(row))
    texts.push(entryText({ chain: chainOf(salt, row), seq, prev, time: row.time, kind: 'live', commitment }))
  }
  const leaves = texts.map((text) => leafHash(Buffer.from(text)))
  const nodes = nodesOf(new Map([...appended(0, new Map(), leaves)].map(([name, { hashes }]) => [name, hashes])))
  const head = checkpointText({ origin, size: leaves.length, root: rootHash(leaves.length, nodes) })
  const checkpoint = `${head}\n${signLine(head, key, pair.privateKey)}`
  const proofOf = (index: number, more: object = {}) => ({
    index,
    hashes: inclusionProof(index, leaves.length, nodes),
    checkpoint,
    beside: { entry: texts[index]!, ...more },
  })
  const opened = (seq: number) => proofOf(seq + 1, { opening: openingText(rows[seq]!), salt })
  return { proofOf, opened, rows, texts }
}

const claim = { host: 'registry.example', path: 'acme/app', tag: 'v1', digest: one, at: '2026-01-15T00:00:00.000Z' }
const refused = (text: string, what: object, why: RegExp) =>
  assert.throws(
    () => provedBy(text, policy, { ...claim, ...what }),
    (error) => error instanceof NotProved && why.test(error.message),
  )

test('proves the digest of a tag between two log entries', () => {
  const { opened, proofOf } = aLog()
  const text = tagProofText([opened(0), proofOf(2)])
  const proved = provedBy(text, policy, claim)
  const [from, until] = ['2026-01-01T00:00:00.000Z', '2026-02-01T00:00:00.000Z']
  assert.deepEqual(proved, { origin, from, until, kind: 'live', size: 4, witnesses: [] })
  refused(text, { digest: two }, /pointed to another digest, sha256:1111/)
  refused(text, { tag: 'v2' }, /about another tag, acme\/app:v1/)
  refused(text, { path: 'acme/other' }, /about another tag, acme\/app:v1/)
  refused(text, { host: 'other.example' }, /belongs to registry.example/)
  refused(text, { at: '2025-12-31T23:59:59.999Z' }, /at 2026-01-01/)
  refused(text, { at: until }, /updated again at 2026-02-01/)
  assert.equal(provedBy(text, policy, { ...claim, host: '' }).until, until)
})

test('one log entry proves when a tag was assigned, but not until when', () => {
  const { opened } = aLog()
  assert.equal(provedBy(tagProofText([opened(0)]), policy, claim).until, '')
  refused(tagProofText([opened(2)]), { digest: two, at: '2026-03-02T00:00:00.000Z' }, /deleted at 2026-03-01/)
})

test('log entries that do not follow each other prove nothing', () => {
  const { opened, proofOf } = aLog()
  refused(tagProofText([opened(0), proofOf(3)]), {}, /does not directly follow/)
  refused(tagProofText([opened(0), proofOf(1)]), {}, /does not directly follow/)
  refused(tagProofText([opened(0), proofOf(0)]), {}, /not a tag entry/)
  refused(tagProofText([opened(0), proofOf(2), proofOf(3)]), {}, /one or two proofs/)
})

test('each change of a proof makes it invalid', () => {
  const { opened, proofOf, rows } = aLog()
  const good = opened(0)
  const forged = (beside: object) => tagProofText([{ ...good, beside: { ...good.beside, ...beside } }])
  const other = openingText({ ...rows[0]!, digest: two })
  refused(forged({ opening: other }), { digest: two }, /does not match the entry/)
  refused(forged({ opening: ` ${good.beside.entry}` }), {}, /does not include the tag history row/)
  refused(forged({ salt: '00'.repeat(32) }), {}, /about different tags/)
  refused(forged({ entry: good.beside.entry.replace('live', 'import') }), {}, /not in the log/)
  refused(tagProofText([proofOf(1)]), {}, /does not include the tag history row/)
  const signed = tagProofText([good])
  refused(signed.replace('\n4\n', '\n5\n'), {}, /signature of the checkpoint is invalid/)
  refused(signed.replace(/— (\S+) .*\n$/, '— other.example AAAAAAAAAAAA\n'), {}, /not signed with a log key/)
  refused(signed.slice(0, -5), {}, /./)
  const unknown = parsePolicy('quorum none\n')
  assert.throws(() => provedBy(signed, unknown, claim), /has no key for the log/)
  const witnessed = parsePolicy(
    `log ${vkeyOf(key)}\nwitness W ${vkeyOf(noteKey('w', 'witness', newKeyPair().publicKey))}\nquorum W\n`,
  )
  assert.throws(() => provedBy(signed, witnessed, claim), /lacks the witness signatures/)
})

test('log entries and their openings have one canonical text', () => {
  const { texts, rows } = aLog()
  for (const text of texts.slice(1)) assert.equal(entryText(parseEntry(text)!), text)
  assert.equal(parseEntry(texts[0]!), undefined)
  assert.equal(parseEntry(texts[1]!.replace('\n0\n-\n', '\n1\n-\n')), undefined)
  const text = openingText(rows[0]!)
  assert.deepEqual(parseOpening(text), rows[0])
  for (const bad of [
    text.replace(',', ', '),
    text.replace('{', '{"actor":"x",'),
    text.replace('}', ',"more":"1"}'),
    '[]',
    'null',
    '{',
  ]) {
    assert.equal(parseOpening(bad), undefined, bad)
  }
})
