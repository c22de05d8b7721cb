import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCheckpoint } from './checkpoint.ts'
import { cosignLine, newKeyPair, noteKey, parseNote, parseVkey, signedBy, signLine, vkeyOf } from './notes.ts'
import { isWitnessed, PolicyError, parsePolicy } from './policy.ts'

// From the documentation of golang.org/x/mod/sumdb/note.
const peterKey = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'
const peterNote = `If you think cryptography is the answer to your problem,
then you don't know what your problem is.

— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
`

test('reads and verifies a note and a key of another program, and rejects a changed note', () => {
  const key = parseVkey(peterKey)!
  assert.equal(vkeyOf(key), peterKey)
  const note = parseNote(peterNote)!
  assert.deepEqual(signedBy(note, key), { is: 'signed', seconds: 0 })
  assert.deepEqual(signedBy({ ...note, text: note.text.replace('answer', 'Answer') }, key), { is: 'wrong' })
  const other = noteKey('PeterNeumann', 'log', newKeyPair().publicKey)
  assert.deepEqual(signedBy(note, other), { is: 'absent' })
  for (const bad of [peterKey.replace('c74f', 'c74e'), peterKey.replace('+c', 'x'), `${peterKey}=`, 'a+b', '']) {
    assert.equal(parseVkey(bad), undefined, bad)
  }
})

test('rejects text that is not a note', () => {
  for (const bad of [
    '',
    'text\n',
    'text\n\n',
    'text\n\n— name\n',
    'text\n\n— name AAAA\n',
    peterNote.slice(0, -1),
    peterNote.replace('— P', '- P'),
    peterNote.replace('answer', 'ans\twer'),
    `${peterNote}\n`,
  ]) {
    assert.equal(parseNote(bad), undefined, JSON.stringify(bad))
  }
})

test('signs the text as a log, and with the time as a witness', () => {
  const text = 'example.com/log\n3\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n'
  const [log, witness] = [newKeyPair(), newKeyPair()]
  const logKey = noteKey('example.com/log', 'log', log.publicKey)
  const witnessKey = noteKey('w.example', 'witness', witness.publicKey)
  const lines = signLine(text, logKey, log.privateKey) + cosignLine(text, witnessKey, witness.privateKey, 1_700_000_000)
  const note = parseNote(`${text}\n${lines}`)!
  assert.deepEqual(signedBy(note, parseVkey(vkeyOf(logKey))!), { is: 'signed', seconds: 0 })
  assert.deepEqual(signedBy(note, parseVkey(vkeyOf(witnessKey))!), { is: 'signed', seconds: 1_700_000_000 })
  // A witness signature is not accepted as a log signature, nor the reverse.
  assert.deepEqual(signedBy(note, noteKey('w.example', 'log', witness.publicKey)), { is: 'absent' })
  assert.deepEqual(signedBy({ ...note, text: text.replace('3', '4') }, witnessKey), { is: 'wrong' })
})

test('a checkpoint has an origin, a canonical size and a root hash', () => {
  const root = 'CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I='
  assert.equal(parseCheckpoint(`example.com/log\n20852163\n${root}\n`)?.size, 20_852_163)
  assert.equal(parseCheckpoint(`example.com/log\n0\n${root}\nmore\n`)?.size, 0)
  for (const bad of [
    `o\n01\n${root}\n`,
    `o\n-1\n${root}\n`,
    `o\n1\n${root}`,
    `o\n1\nAAAA\n`,
    `\n1\n${root}\n`,
    'o\n1\n',
  ]) {
    assert.equal(parseCheckpoint(bad), undefined, bad)
  }
})

test('a policy lists logs, witnesses and the required number of witnesses', () => {
  const keys = Array.from({ length: 5 }, (_, i) =>
    noteKey(`w${i}.example`, i === 4 ? 'log' : 'witness', newKeyPair().publicKey),
  )
  const [a, b, c, d, log] = keys.map(vkeyOf)
  const text = `# who watches
log ${log} https://example.com/
witness A ${a}
witness\tB ${b} https://b.example/
witness C ${c}
  witness D ${d}

group two 2 A B C
group all all two D
quorum all
`
  const policy = parsePolicy(text)
  const seenBy = (...seen: number[]) =>
    isWitnessed(policy.quorum, ({ name }) => seen.some((i) => keys[i]!.name === name))
  assert.deepEqual(
    [seenBy(0, 1, 3), seenBy(1, 2, 3), seenBy(0, 1, 2), seenBy(0, 3), seenBy()],
    [true, true, false, false, false],
  )
  assert.equal(policy.logs[0]?.name, 'w4.example')
  assert.ok(isWitnessed(parsePolicy('quorum none\n').quorum, () => false))

  const wrong: Record<string, RegExp> = {
    [`log ${log}`]: /no quorum/,
    'quorum X': /line 1 .*X, which no earlier line/,
    'quorum none\nquorum none': /line 2/,
    [`log ${a}\nquorum none`]: /line 1 .*needs an Ed25519 log key/,
    [`witness A ${a}\nwitness B ${a}\nquorum none`]: /line 2/,
    [`witness none ${a}\nquorum none`]: /name that no other line uses/,
    [`witness A ${a}\ngroup g 2 A\nquorum g`]: /count from 1 to the number of its members/,
    [`witness A ${a}\ngroup g any A\ngroup h any A\nquorum h`]: /lists A twice/,
    'frobnicate\nquorum none': /frobnicate/,
  }
  for (const [bad, why] of Object.entries(wrong)) {
    assert.throws(
      () => parsePolicy(bad),
      (error) => error instanceof PolicyError && why.test(error.message),
      bad,
    )
  }
})
