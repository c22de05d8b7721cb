// The server as a witness of logs at other servers.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Config, readConfig } from '#config.ts'
import { sql } from '#db/sql.ts'
import { backfillLedgers, sequenceLedgers, witnessLedgers } from '#domains/ledger/ledger.job.ts'
import { checkpointText } from '#lib/tlog/checkpoint.ts'
import { consistencyProof, leafHash, rootHash } from '#lib/tlog/merkle.ts'
import { newKeyPair, noteKey, parseSignatures, parseVkey, signedBy, signLine, vkeyOf } from '#lib/tlog/notes.ts'
import { parsePolicy } from '#lib/tlog/policy.ts'
import { provedBy } from '#lib/tlog/tag-proof.ts'
import { forgetRestored } from '#maintenance/restored-rows.store.ts'
import { runJob } from '../support/background-jobs.ts'
import { nodesOver } from '../support/log-tree.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { digestOf, plantTag } from '../support/tags.ts'
import { restart, witnessed } from '../support/witnessed.ts'

const origin = 'log.example/ledger/other'
const pair = newKeyPair()
const key = noteKey(origin, 'log', pair.publicKey)
const leaves = Array.from({ length: 40 }, (_, i) => leafHash(Buffer.from(`entry ${i}`)))
const nodes = nodesOver(leaves)

const textOf = (size: number, root = rootHash(size, nodes)) => checkpointText({ origin, size, root })
const noted = (text: string, privateKey = pair.privateKey) => `${text}\n${signLine(text, key, privateKey)}`

/** Request of a log whose witness has seen `old` entries. */
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

test('a witness signs checkpoints that extend its last one, with the time', async () => {
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

test('a witness refuses checkpoints that contradict its last one, with the errors of the protocol', async () => {
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
    ['a fork', asked(20, 30, noted(textOf(30, fork))), 422, /consistency proof .* is invalid/],
    ['no proof', asked(20, 30, noted(textOf(30)), []), 422, /consistency proof .* is invalid/],
    ['a step back', asked(20, 10, noted(textOf(10)), []), 400, /larger/],
    ['another key', asked(20, 30, stranger), 403, /not signed/],
    ['another log', asked(20, 30, noted(other)), 404, /does not cosign this log/],
    ['no size', asked(20, 30).replace('old 20', 'old'), 400, /not a valid request/],
    ['a size that is written otherwise', asked(20, 30).replace('old 20', 'old 020'), 400, /not a valid request/],
    [
      'too many hashes',
      asked(
        20,
        30,
        noted(textOf(30)),
        Array.from({ length: 64 }, () => fork),
      ),
      400,
      /not a valid request/,
    ],
    ['no checkpoint', 'old 20\n\n', 400, /not a valid request/],
    ['nothing', '', 400, /not a valid request/],
  ]
  for (const [what, body, status, why] of cases) {
    const answer = await post(body)
    assert.equal(answer.status, status, `${what}: ${answer.text}`)
    assert.match(answer.text, why, what)
    if (status === 409) assert.equal(answer.headers.get('content-type'), 'text/x.tlog.size')
  }
  assert.equal((await post('x'.repeat(70_000))).status, 413)
  assert.equal((await pinfold.anonymous.get('/ledger/witness/add-checkpoint')).status, 405)
  // None of the requests has changed the stored checkpoint of the witness.
  assert.equal((await post(asked(20, 40))).status, 200)
})

test('signs one of several concurrent requests that extend the same checkpoint', async () => {
  const { pinfold, post } = await witness()
  await using _ = pinfold
  const sizes = [10, 20, 30, 40]
  const answers = await Promise.all(sizes.map((size) => post(asked(0, size))))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409])
  const seen = sizes[answers.findIndex(({ status }) => status === 200)]!
  for (const { status, text } of answers) if (status === 409) assert.equal(text, `${seen}\n`)
})

test('returns 404 for the witness paths on a server that is no witness', async () => {
  await using pinfold = await startPinfold()
  assert.equal((await pinfold.anonymous.get('/ledger/witness/key')).status, 404)
  assert.equal((await pinfold.anonymous.call('POST', '/ledger/witness/add-checkpoint', asked(0, 1))).status, 404)
})

test('asks a witness at a private address only if the witness setting lists the address', async () => {
  const elsewhere = { issuersPrivate: ['127.0.0.1'], upstreamsPrivate: ['127.0.0.1'] }
  for (const [allowed, signatures] of [
    [{ witnessesPrivate: ['127.0.0.1'] }, 2],
    [elsewhere, 1],
  ] as const) {
    const { closing, log, checkpoint } = await witnessed(1, allowed)
    await using _ = closing
    await runJob(log.app, witnessLedgers)
    assert.equal((await checkpoint()).match(/^— /gm)!.length, signatures)
  }
})

test('a log asks its witnesses, and proofs use checkpoints that more than half of them cosigned', async () => {
  const { closing, log, org, repo, keys, witnesses, policy, proof, checkpoint, claim } = await witnessed(3)
  await using _ = closing
  const wanted = await policy()
  assert.equal(wanted.witnesses.length, 3)
  const unseen = await proof()
  assert.throws(() => provedBy(unseen, wanted, claim), /lacks the witness signatures/)
  await runJob(log.app, witnessLedgers)
  const first = provedBy(await proof(), wanted, claim)
  assert.deepEqual(first.witnesses.map(({ name }) => name).sort(), keys.map(({ name }) => name).sort())
  assert.equal((await checkpoint()).match(/^— /gm)!.length, 4)
  // An independent program does the same.
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-witness-'))
  closing.defer(() => rmSync(folder, { recursive: true }))
  const files = ['proof', 'policy'].map((name) => join(folder, name)) as [string, string]
  writeFileSync(files[0], await proof())
  writeFileSync(files[1], (await log.operator.get(`/ledger/${org}/policy`)).text)
  const verifier = join(import.meta.dirname, '../../examples/verify-ledger/verify.py')
  const image = `${claim.host}/${claim.path}:${claim.tag}@${claim.digest}`
  const python = () => spawnSync('python3', [verifier, image, claim.at, ...files], { encoding: 'utf8' })
  assert.equal(python().status, 3, python().stderr)
  writeFileSync(files[0], unseen)
  assert.match(python().stderr, /lacks the witness signatures/)
  // Without new entries, the server asks no witness.
  assert.deepEqual(await runJob(log.app, witnessLedgers), { cosigned: 0 })

  // One unavailable witness of the three does not matter, and is asked again. With two of them, earlier cosignatures still count.
  await plantTag(log, repo, 'v1', 'b')
  await runJob(log.app, sequenceLedgers)
  await witnesses[2]![Symbol.asyncDispose]()
  await runJob(log.app, witnessLedgers)
  const second = provedBy(await proof(), wanted, claim)
  assert.equal(second.witnesses.length, 2)
  assert.notEqual(second.until, '')
  await witnesses[1]![Symbol.asyncDispose]()
  await plantTag(log, repo, 'v1', 'c')
  await runJob(log.app, sequenceLedgers)
  await runJob(log.app, witnessLedgers)
  assert.deepEqual(provedBy(await proof(), wanted, claim), second)
})

test('a proof of the first entry after a witnessed checkpoint uses a checkpoint with this entry', async () => {
  const { closing, log, org, repo, policy, claim } = await witnessed(1)
  await using _ = closing
  await runJob(log.app, witnessLedgers)
  const wanted = await policy()
  const proofOf = async (tag: string, letter: string) => {
    const { updateTime: at } = await plantTag(log, repo, tag, letter)
    await runJob(log.app, sequenceLedgers)
    const proof = () => log.operator.get(`/ledger/${org}/repos/${repo}/tags/${tag}/proof?at=${at}`)
    const said = { ...claim, tag, digest: digestOf(letter), at: at as string }
    const verify = async () => provedBy((await proof()).text, wanted, said)
    // The log has signed a checkpoint with this entry, which no witness has cosigned yet.
    await assert.rejects(verify, /lacks the witness signatures/)
    await runJob(log.app, witnessLedgers)
    return (await verify()).witnesses.length
  }
  for (const [tag, letter] of ['b', 'c'].entries()) assert.equal(await proofOf(`new${tag}`, letter), 1)
})

test('asks about each waiting log once per run, however many logs wait', async () => {
  const { closing, log } = await witnessed(1)
  await using _ = closing
  const { app } = log
  await app.db.tx(async (tx) => {
    for (let i = 1; i <= 230; i++) {
      await tx.run(sql`
        INSERT INTO ledger_logs
               (org_uid, generation, origin, secret, state, size, checkpoint, checkpoint_size, checkpoint_time)
        SELECT org_uid, generation + ${i}, origin || ${`/${i}`}, secret, state, size, checkpoint, checkpoint_size,
               checkpoint_time
          FROM ledger_logs WHERE generation = 1`)
    }
  })
  const { toWitnesses } = app
  let asked = 0
  const answering = (answer: () => Promise<{ status: number; body: string }>) => {
    asked = 0
    app.toWitnesses = { ...toWitnesses, post: () => answer().finally(() => asked++) }
  }
  answering(async () => ({ status: 404, body: '' }))
  await runJob(app, witnessLedgers)
  assert.equal(asked, 231)
  await runJob(app, witnessLedgers)
  assert.equal(asked, 462)
  answering(() => Promise.reject(new Error('nobody is there')))
  await runJob(app, witnessLedgers)
  assert.equal(asked, 1)
})

test('sends the proof again to a witness that has lost its size or has another one', async () => {
  const { closing, log, repo, witnesses, policy, proof, claim } = await witnessed(1)
  await using _ = closing
  await runJob(log.app, witnessLedgers)
  await plantTag(log, repo, 'v2', 'a')
  await runJob(log.app, sequenceLedgers)
  await log.app.db.tx((tx) => tx.run(sql`UPDATE ledger_cosigners SET size = 1`))
  assert.deepEqual(await runJob(log.app, witnessLedgers), { cosigned: 1 })
  await plantTag(log, repo, 'v2', 'b')
  await runJob(log.app, sequenceLedgers)
  await witnesses[0]!.app.db.tx((tx) => tx.run(sql`DELETE FROM witnessed_logs`))
  assert.deepEqual(await runJob(log.app, witnessLedgers), { cosigned: 1 })
  assert.equal(provedBy(await proof(), await policy(), claim).size, 4)
})

test('stops signing a log if a witness has a checkpoint with more entries', async () => {
  const { closing, log, org, repo, witnesses, checkpoint } = await witnessed(1)
  await using _ = closing
  await runJob(log.app, witnessLedgers)
  const before = await checkpoint()
  await plantTag(log, repo, 'v1', 'b')
  await runJob(log.app, sequenceLedgers)
  const after = await checkpoint()
  assert.notEqual(after, before)
  // The database looks like one of an earlier version.
  await witnesses[0]!.app.db.tx((tx) => tx.run(sql`UPDATE witnessed_logs SET size = 100`))
  await runJob(log.app, witnessLedgers)
  await plantTag(log, repo, 'v1', 'c')
  await runJob(log.app, sequenceLedgers)
  assert.equal(await checkpoint(), after)

  const resumed = await log.operator.post('/control/v1/ledgerLogs:resume')
  assert.deepEqual([resumed.status, resumed.body.logs], [200, 1])
  assert.deepEqual((await log.operator.post('/control/v1/ledgerLogs:resume')).body.logs ?? 0, 0)
  // The resumption is in the audit log of the organization, once.
  const entries = await log.operator.get(`/events/v2/audit?subject=${org}`)
  const told = entries.body.auditEntries.filter(({ type }: { type: string }) => type.endsWith('.ledger.resumed.v1'))
  assert.deepEqual(
    told.map(({ body }: { body: string }) => JSON.parse(body).logs),
    [1],
  )
  await runJob(log.app, backfillLedgers)
  await runJob(log.app, sequenceLedgers)
  assert.equal(await checkpoint(), after)
  const { name } = parsePolicy((await log.operator.get(`/ledger/${org}/policy`)).text).logs[0]!
  const next = (await log.operator.get(`${name.slice(name.indexOf('/'))}/checkpoint`)).text.split('\n')
  assert.deepEqual(next.slice(0, 2), [name, '4'])
})

test('stops signing a log that grew beyond a contradicting checkpoint of a witness', async () => {
  const { closing, log, repo, witnesses, checkpoint } = await witnessed(1)
  await using _ = closing
  await runJob(log.app, witnessLedgers)
  // The witness has seen entries that a backup lacks, and the log has grown beyond that size meanwhile.
  const root = Buffer.alloc(32, 5).toString('base64')
  await witnesses[0]!.app.db.tx((tx) => tx.run(sql`UPDATE witnessed_logs SET size = 3, root = ${root}`))
  for (const image of ['b', 'c', 'd']) await plantTag(log, repo, 'v1', image)
  await runJob(log.app, sequenceLedgers)
  await runJob(log.app, witnessLedgers)
  const last = await checkpoint()
  await plantTag(log, repo, 'v1', 'e')
  await runJob(log.app, sequenceLedgers)
  assert.equal(await checkpoint(), last)
})

test('asks a new witness although the log has not grown, and counts only configured witnesses', async () => {
  const { closing, log, keys, checkpoint } = await witnessed(2)
  await using _ = closing
  const { config }: { config: Partial<Config> } = log.app
  const [one, two] = config.transparencyLogWitnesses!
  config.transparencyLogWitnesses = [one!]
  await runJob(log.app, witnessLedgers)
  config.transparencyLogWitnesses = [two!]
  await runJob(log.app, witnessLedgers)
  const text = await checkpoint()
  assert.ok(text.includes(`— ${keys[1]!.name} `) && !text.includes(`— ${keys[0]!.name} `), text)
})

test('a restored witness signs with a new key, because it may have lost its latest signatures', async () => {
  const { pinfold } = await witness()
  await using _ = pinfold
  const key = async () => (await pinfold.anonymous.get('/ledger/witness/key')).text
  const before = await key()
  assert.equal(await key(), before)
  await pinfold.app.db.tx((tx) => forgetRestored(tx, { now: '2026-01-01T00:00:00.000Z', pushTokens: false }))
  assert.notEqual(await key(), before)
})

test('after a start on a copy of an earlier database, signs nothing that contradicts the witnesses', async () => {
  const { closing, log, repo, witnesses, checkpoint } = await witnessed(1)
  await using _ = closing
  await runJob(log.app, witnessLedgers)
  const before = await checkpoint()
  // Only the witness knows the entries that were signed after the backup was taken.
  const root = Buffer.alloc(32, 5).toString('base64')
  await witnesses[0]!.app.db.tx((tx) => tx.run(sql`UPDATE witnessed_logs SET size = 3, root = ${root}`))
  restart(log)
  for (const image of ['b', 'c']) await plantTag(log, repo, 'v1', image)
  await runJob(log.app, sequenceLedgers)
  assert.equal(await checkpoint(), before)
  assert.equal((await log.operator.post('/control/v1/ledgerLogs:resume')).body.logs, 1)
})

test('after a start, signs a log once more than half of its witnesses have answered, counting each once', async () => {
  const { closing, log, repo, keys, witnesses, checkpoint } = await witnessed(3)
  await using _ = closing
  await runJob(log.app, witnessLedgers)
  restart(log)
  const before = await checkpoint()
  for (const one of [1, 2]) await witnesses[one]![Symbol.asyncDispose]()
  await plantTag(log, repo, 'v1', 'b')
  await runJob(log.app, sequenceLedgers)
  const after = await checkpoint()
  assert.equal(after.split('\n')[1], before.split('\n')[1])
  assert.deepEqual(
    [...after.matchAll(/^— (\S+) /gm)].map(([, name]) => name).sort(),
    [...before.matchAll(/^— (\S+) /gm)].map(([, name]) => name).sort(),
  )
  // The settings no longer contain the two witnesses, so one is enough.
  const { config }: { config: Partial<Config> } = log.app
  config.transparencyLogWitnesses = config.transparencyLogWitnesses!.filter(({ key }) => key.name === keys[0]!.name)
  restart(log)
  await runJob(log.app, sequenceLedgers)
  assert.notEqual((await checkpoint()).split('\n')[1], before.split('\n')[1])
})

/** The server clock is an hour ahead during these requests. */
async function ahead({ app }: Pinfold, work: () => Promise<void>): Promise<void> {
  const { clock } = app
  app.clock = () => new Date(clock().getTime() + 3_600_000)
  await work()
  app.clock = clock
}

test('witness answers after a start stay valid if the clock is set back', async () => {
  const { closing, log, repo, checkpoint } = await witnessed(1)
  await using _ = closing
  const size = async () => Number((await checkpoint()).split('\n')[1])
  const before = await size()
  await plantTag(log, repo, 'v1', 'b')
  await ahead(log, async () => restart(log))
  await runJob(log.app, sequenceLedgers)
  assert.equal(await size(), before + 1)
})

test('asks unavailable witnesses again after a minute, also if the clock was ahead at the first request', async () => {
  const { closing, log, repo, witnesses, checkpoint } = await witnessed(1)
  await using _ = closing
  await runJob(log.app, witnessLedgers)
  let passed = 0
  restart(log, () => passed)
  const before = await checkpoint()
  const { toWitnesses } = log.app
  let asked = 0
  const away: typeof toWitnesses = {
    ...toWitnesses,
    async post() {
      asked++
      throw new Error('nobody is there')
    },
  }
  log.app.toWitnesses = away
  await plantTag(log, repo, 'v1', 'b')
  await ahead(log, async () => void (await runJob(log.app, sequenceLedgers)))
  await runJob(log.app, sequenceLedgers)
  assert.deepEqual([asked, await checkpoint()], [1, before], 'not twice within a minute')
  log.app.toWitnesses = toWitnesses
  passed += 60_000
  await runJob(log.app, sequenceLedgers)
  assert.notEqual(await checkpoint(), before)
  assert.equal(witnesses.length, 1)
})

test('witness answers to a process with a wrong clock are not valid for the next process', async () => {
  const { closing, log, repo, witnesses, checkpoint } = await witnessed(1)
  await using _ = closing
  await runJob(log.app, witnessLedgers)
  restart(log)
  await plantTag(log, repo, 'v1', 'b')
  await ahead(log, async () => void (await runJob(log.app, sequenceLedgers)))
  await runJob(log.app, witnessLedgers)
  const before = await checkpoint()
  const root = Buffer.alloc(32, 5).toString('base64')
  await witnesses[0]!.app.db.tx((tx) => tx.run(sql`UPDATE witnessed_logs SET size = 9, root = ${root}`))
  restart(log)
  await plantTag(log, repo, 'v1', 'c')
  await runJob(log.app, sequenceLedgers)
  assert.equal(await checkpoint(), before)
})

test('a witness that does not know the log does not block signing', async () => {
  const { closing, log, repo, witnesses, checkpoint } = await witnessed(1)
  await using _ = closing
  const other: Partial<Config> = witnesses[0]!.app.config
  other.witnessLogs = [key]
  restart(log)
  const before = await checkpoint()
  await plantTag(log, repo, 'v1', 'b')
  await runJob(log.app, sequenceLedgers)
  assert.notEqual(await checkpoint(), before)
})

test('neither the log nor witness requests contain names or digests of fifty private repositories', async () => {
  const { closing, log, org, checkpoint } = await witnessed(1)
  await using _ = closing
  const told: string[] = []
  const { toWitnesses } = log.app
  const app: { toWitnesses: typeof toWitnesses } = log.app
  app.toWitnesses = {
    ...toWitnesses,
    post: (url, request, ...more) => {
      told.push(url, JSON.stringify(request))
      return toWitnesses.post(url, request, ...more)
    },
  }
  const secrets = ['acme']
  for (let i = 0; i < 50; i++) {
    const repo = await log.seed.repo(org, { name: `project-${i}` })
    const { digest } = await plantTag(log, repo.uid, `codename-${i}`, `image ${i}`)
    secrets.push(`project-${i}`, `codename-${i}`, digest.slice(7), repo.uid.slice(org.length))
  }
  await runJob(log.app, sequenceLedgers)
  assert.equal(await runJob(log.app, witnessLedgers).then(({ cosigned }) => cosigned), 1)
  const size = Number((await checkpoint()).split('\n')[1])
  const tiles = await Promise.all(
    ['entries', '0'].map((kind) => log.operator.get(`/ledger/${org}/tile/${kind}/000.p/${size}`)),
  )
  for (const { status } of tiles) assert.equal(status, 200)
  const [entries, hashes] = tiles.map(({ text }) => text) as [string, string]
  assert.equal(entries.split('pinfold-tag/1').length - 1, 51)
  for (const text of [entries, hashes, await checkpoint(), ...told]) {
    assert.deepEqual(
      secrets.filter((secret) => text.includes(secret)),
      [],
    )
  }
  assert.ok(told.join('').includes(`${org}`), 'the log itself is named, by the uid of its organization')
})

test('asks a witness over plain http only if http is allowed for upstreams', async () => {
  const { closing, log, witnesses } = await witnessed(1)
  await using _ = closing
  const own = log.app.config.transparencyLogWitnesses[0]!
  const env = { PINFOLD_TRANSPARENCY_LOG_WITNESSES: `${vkeyOf(own.key)} ${own.url}` }
  assert.throws(
    () => readConfig(env),
    /PINFOLD_TRANSPARENCY_LOG_WITNESSES has http:.* set PINFOLD_ALLOW_INSECURE_UPSTREAMS=on/,
  )
  assert.throws(() => readConfig({ ...env, PINFOLD_ALLOW_INSECURE_ISSUERS: 'on' }), /PINFOLD_ALLOW_INSECURE_UPSTREAMS/)
  assert.deepEqual(readConfig({ ...env, PINFOLD_ALLOW_INSECURE_UPSTREAMS: 'on' }).transparencyLogWitnesses, [own])
  // The requests to witnesses contain no name or digest either.
  await using plain = await startPinfold({ allowPrivateAddresses: true, allowInsecureIssuers: true })
  await assert.rejects(
    plain.app.toWitnesses.post(`${witnesses[0]!.url}/ledger/witness/add-checkpoint`, { headers: {}, body: '' }),
    {
      reason: 'insecure',
    },
  )
})
