// Transparency logs of tag histories, read as an independent program would read them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '#db/leases.ts'
import { type Db, ident, type Sql, sql, type Tx } from '#db/sql.ts'
import { backfillLedgers, sequenceLedgers } from '#domains/ledger/ledger.job.ts'
import { backfillSome } from '#domains/ledger/proofs/backfill.service.ts'
import { endLogs } from '#domains/ledger/proofs/logs.store.ts'
import { proofOf } from '#domains/ledger/proofs/proofs.service.ts'
import { sequenceSome } from '#domains/ledger/proofs/sequence.service.ts'
import { parseCheckpoint } from '#lib/tlog/checkpoint.ts'
import { consistencyProof, isConsistent, leafHash, rootHash } from '#lib/tlog/merkle.ts'
import { parseNote, signedBy, vkeyOf } from '#lib/tlog/notes.ts'
import { parsePolicy } from '#lib/tlog/policy.ts'
import { parseProofs } from '#lib/tlog/proof-text.ts'
import { parseEntry } from '#lib/tlog/tag-entry.ts'
import { NotProved, provedBy } from '#lib/tlog/tag-proof.ts'
import { nodesOf, openTiles, tileKey, tileWidth } from '#lib/tlog/tiles.ts'
import { operatorUid } from '#lib/uid.ts'
import { runJob, withoutLease } from '../support/background-jobs.ts'
import { captureLog } from '../support/log.ts'
import { entriesIn, tilePathOf } from '../support/log-tree.ts'
import { type Client, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { digestOf, ledgerOf, plantManifest, plantTag } from '../support/tags.ts'

async function logged({ app }: Pick<Pinfold, 'app'>): Promise<void> {
  await runJob(app, backfillLedgers)
  await runJob(app, sequenceLedgers)
}

/** Reads a complete log, and checks everything that can be verified without tag history rows. */
async function readLog(client: Client, url: string, prefix: string) {
  const org = prefix.split('/')[2]!
  const policy = parsePolicy((await client.get(`/ledger/${org}/policy`)).text)
  const { text } = await client.get(`${prefix}/checkpoint`)
  const note = parseNote(text)!
  const checkpoint = parseCheckpoint(note.text)!
  assert.equal(checkpoint.origin, `${new URL(url).host}${prefix}`)
  const keys = policy.logs.filter(({ name }) => name === checkpoint.origin)
  assert.deepEqual(
    keys.map((key) => signedBy(note, key).is),
    ['signed'],
  )
  const { size } = checkpoint
  const entries: Buffer[] = []
  for (let index = 0; index * tileWidth < size; index++) {
    const width = Math.min(size - index * tileWidth, tileWidth)
    const bundle = await bytesOf(client, url, `${prefix}/${tilePathOf({ kind: 'entries', level: 0, index, width })}`)
    entries.push(...entriesIn(bundle))
    const tile = await bytesOf(client, url, `${prefix}/${tilePathOf({ kind: 'hashes', level: 0, index, width })}`)
    const leaves = entries.slice(index * tileWidth).map(leafHash)
    assert.deepEqual(tile, Buffer.concat(leaves))
  }
  assert.equal(entries.length, size)
  const tiles = new Map<string, Buffer>()
  for (const at of openTiles(size)) {
    const width = Math.floor(size / tileWidth ** at.level) % tileWidth
    tiles.set(tileKey(at), await bytesOf(client, url, `${prefix}/${tilePathOf({ kind: 'hashes', ...at, width })}`))
  }
  assert.deepEqual(rootHash(size, nodesOf(tiles)), checkpoint.root)
  return { checkpoint, policy, entries: entries.map(String), tiles }
}

const pathOf = (origin: string) => origin.slice(origin.indexOf('/'))

async function bytesOf(client: Client, url: string, path: string): Promise<Buffer> {
  const res = await fetch(url + path, { headers: { authorization: `Bearer ${client.token}` } })
  assert.equal(res.status, 200, path)
  assert.equal(res.headers.get('content-type'), 'application/octet-stream')
  assert.match(res.headers.get('cache-control')!, /immutable/)
  return Buffer.from(await res.arrayBuffer())
}

async function scene(settings: Parameters<typeof startPinfold>[0] = {}) {
  const pinfold = await startPinfold(settings)
  const org = await pinfold.seed.group('', { name: 'acme' })
  const repo = await pinfold.seed.repo(org.uid as string, { name: 'app' })
  return { pinfold, org: org.uid as string, repo: repo.uid as string, prefix: `/ledger/${org.uid}` }
}

const claimOf = (url: string, tag: string, image: string, at: string) => ({
  host: new URL(url).host,
  path: 'acme/app',
  tag,
  digest: digestOf(image),
  at,
})

test('a proof is for the checkpoint in it, also if entries are added meanwhile', async () => {
  const { pinfold, repo, prefix } = await scene()
  await using _ = pinfold
  const { app, operator, url } = pinfold
  await plantTag(pinfold, repo, 'v1', 'image 0')
  await logged(pinfold)
  const policy = parsePolicy((await operator.get(`${prefix}/policy`)).text)
  const last = async () =>
    (await app.db.get<{ time: string; size: number }>(sql`
      SELECT max(h.time) AS time, (SELECT max(size) FROM ledger_logs) AS size FROM tag_history h WHERE h.tag = 'v1'`))!
  const lengths: number[] = []
  for (let meanwhile = 1; ; meanwhile++) {
    const { time: at, size: covered } = await last()
    let asked = 0
    const ask = async <T>(answer: () => Promise<T>): Promise<T> => {
      if (++asked === meanwhile) {
        await plantTag(pinfold, repo, 'v1', `image ${meanwhile}`)
        await logged(pinfold)
      }
      return answer()
    }
    const db: Db = {
      ...app.db,
      all: (query) => ask(() => app.db.all(query)),
      get: (query) => ask(() => app.db.get(query)),
    }
    const text = await proofOf({ ...app, db }, { repo, tag: 'v1', at })
    if (asked < meanwhile) break
    const { until } = provedBy(text, policy, claimOf(url, 'v1', `image ${meanwhile - 1}`, at))
    const proofs = parseProofs(text)!
    const head = parseCheckpoint(parseNote(proofs[0]!.checkpoint)!.text)!
    // The next row is after the checkpoint, or the proof contains it.
    const isOver = head.size > covered
    assert.deepEqual([proofs.length, until !== ''], [isOver ? 2 : 1, isOver], `before question ${meanwhile}`)
    lengths.push(proofs.length)
  }
  assert.ok(lengths.includes(1) && lengths.includes(2), `${lengths}`)
})

test('each tag history row becomes a log entry, and the growing log stays consistent', async () => {
  const { pinfold, org, repo, prefix } = await scene()
  await using _ = pinfold
  const { operator, url } = pinfold
  const { uid } = await plantTag(pinfold, repo, 'v1', 'a')
  await plantTag(pinfold, repo, 'v1', 'b')
  await plantTag(pinfold, repo, 'v2', 'a')
  await logged(pinfold)
  const first = await readLog(operator, url, prefix)
  assert.equal(first.checkpoint.size, 4)
  assert.match(first.entries[0]!, new RegExp(`^pinfold-log/1\n${new URL(url).host}${prefix}\n[0-9a-f]{64}\n-\n$`))

  assert.equal((await operator.delete(`/registry/v2/tags/${uid}`)).status, 200)
  await logged(pinfold)
  const second = await readLog(operator, url, prefix)
  assert.equal(second.checkpoint.size, 5)
  assert.deepEqual(second.entries.slice(0, 4), first.entries)
  const proof = consistencyProof(4, 5, nodesOf(second.tiles))
  assert.ok(isConsistent(first.checkpoint, second.checkpoint, proof))

  // The entry does not contain the names of repository and tag.
  const all = second.entries.slice(1).join('')
  for (const word of ['acme', 'app', 'v1', 'v2', digestOf('a').slice(7), repo, org])
    assert.ok(!all.includes(word), word)
  const rows = await ledgerOf(pinfold, repo)
  const chains = Map.groupBy(
    second.entries.slice(1).map((entry) => parseEntry(entry)!),
    ({ chain }) => chain,
  )
  const seqs = [...chains.values()].map((some) => some.map(({ seq }) => seq).join())
  assert.deepEqual(seqs.sort(), ['0', '0,1,2'])
  assert.deepEqual(
    [...chains.values()]
      .flat()
      .map(({ time }) => time)
      .sort(),
    rows.map(({ time }) => time).sort(),
  )
})

test('a proof contains only the digest of a tag and the time range of the assignment', async () => {
  const { pinfold, repo, prefix } = await scene()
  await using _ = pinfold
  const { operator, url } = pinfold
  const times: string[] = []
  for (const image of ['a', 'b']) times.push((await plantTag(pinfold, repo, 'v1', image)).updateTime as string)
  const asked = `${prefix}/repos/${repo}/tags/v1/proof`
  const { log, lines } = captureLog('warn')
  Object.assign(pinfold.app, { log })
  const early = await operator.get(asked)
  assert.equal(early.status, 503)
  assert.equal(early.headers.get('retry-after'), '1')
  assert.deepEqual(lines, [])
  await logged(pinfold)
  const policy = parsePolicy((await operator.get(`${prefix}/policy`)).text)

  const closed = (await operator.get(`${asked}?at=${times[0]}`)).text
  const proved = provedBy(closed, policy, claimOf(url, 'v1', 'a', times[0]!))
  assert.deepEqual([proved.from, proved.until, proved.kind], [times[0], times[1], 'live'])
  assert.throws(() => provedBy(closed, policy, claimOf(url, 'v1', 'b', times[0]!)), NotProved)
  const open = (await operator.get(asked)).text
  assert.equal(provedBy(open, policy, claimOf(url, 'v1', 'b', times[1]!)).until, '')

  const wrong: [string, number, RegExp][] = [
    [`${asked}?at=yesterday`, 400, /at: must be a time/],
    [`${asked}?at=2999-01-01T00:00:00Z`, 400, /at: must not be in the future/],
    [`${asked}?at=2001-01-01T00:00:00Z`, 404, /not found/],
    [`${prefix}/repos/${repo}/tags/v9/proof`, 404, /not found/],
    [`${prefix}/repos/${repo}${'0'.repeat(3)}/tags/v1/proof`, 404, /path not found/],
    [`${prefix}/tile/0/x000/000`, 404, /path not found/],
    [`${prefix}/tile/0/000`, 404, /not found/],
    [`${prefix}/tile/0/000.p/4`, 404, /not found/],
    [`${prefix}/tile/entries/001.p/1`, 404, /not found/],
    [`${prefix}/1/checkpoint`, 404, /path not found/],
    [`${prefix}/2/checkpoint`, 404, /path not found/],
    [`${prefix}/2-00000000/checkpoint`, 404, /not found/],
    [`/ledger/${'0'.repeat(40)}/policy`, 404, /not found/],
  ]
  for (const [path, status, why] of wrong) {
    const answer = await operator.get(path)
    assert.equal(answer.status, status, `${path}: ${answer.text}`)
    assert.match(answer.text, why, path)
  }
  assert.equal((await operator.post(`${prefix}/checkpoint`)).status, 405)
})

test('logs require permission to list tags, unless the settings publish them; tag proofs always require it', async () => {
  for (const transparencyLog of ['members', 'public', 'off'] as const) {
    const { pinfold, org, repo, prefix } = await scene({ transparencyLog })
    await using _ = pinfold
    await plantTag(pinfold, repo, 'v1')
    await logged(pinfold)
    const identity = await pinfold.seed.identity(org)
    const stranger = await pinfold.as(identity.uid as string)
    const proof = `${prefix}/repos/${repo}/tags/v1/proof`
    const statuses = async (client: Client) => {
      return Promise.all(
        [`${prefix}/checkpoint`, `${prefix}/tile/0/000.p/1`, `${prefix}/policy`, proof].map(
          async (path) => (await client.get(path)).status,
        ),
      )
    }
    const expected = {
      members: { nobody: [401, 401, 401, 401], stranger: [403, 403, 403, 403], viewer: [200, 200, 200, 200] },
      public: { nobody: [200, 200, 200, 401], stranger: [200, 200, 200, 403], viewer: [200, 200, 200, 200] },
      off: { nobody: [404, 404, 404, 404], stranger: [404, 404, 404, 404], viewer: [404, 404, 404, 404] },
    }[transparencyLog]
    assert.deepEqual(await statuses(pinfold.anonymous), expected.nobody)
    assert.deepEqual(await statuses(stranger), expected.stranger)
    await pinfold.seed.binding(org, identity.uid as string, roleUids.viewer)
    assert.deepEqual(await statuses(stranger), expected.viewer)
  }
})

test('adds tag history older than the log in batches, before newer rows', async () => {
  const { pinfold, repo, prefix } = await scene()
  await using _ = pinfold
  const { app, operator, url } = pinfold
  for (const tag of ['v1', 'v2']) for (const image of ['a', 'b']) await plantTag(pinfold, repo, tag, image)
  // Marks the rows as older than the logs.
  await app.db.tx(async (tx) => {
    await tx.run(sql`DELETE FROM ledger_pending`)
    await tx.run(sql`INSERT INTO ledger_backfills (ledger_id, after_tag, after_time) SELECT id, '', '' FROM ledgers`)
  })
  await plantTag(pinfold, repo, 'v1', 'c')
  await runJob(app, sequenceLedgers)
  assert.equal((await operator.get(`${prefix}/checkpoint`)).status, 404)
  await logged(pinfold)
  const { entries } = await readLog(operator, url, prefix)
  const parsed = entries.slice(1).map((entry) => parseEntry(entry)!)
  assert.deepEqual(
    parsed.map(({ seq, kind }) => [seq, kind]),
    [
      [0, 'backfill'],
      [1, 'backfill'],
      [2, 'live'],
      [0, 'backfill'],
      [1, 'backfill'],
    ],
  )
  assert.equal(await app.db.get(sql`SELECT 1 AS found FROM ledger_backfills`), undefined)
})

test('the deletion of a repository is in the log, and a recreated repository continues the chain of its tags', async () => {
  const { pinfold, org, repo, prefix } = await scene()
  await using _ = pinfold
  const { operator, url } = pinfold
  await plantTag(pinfold, repo, 'v1', 'a')
  assert.equal((await operator.delete(`/registry/v2/repos/${repo}`)).status, 200)
  const again = await pinfold.seed.repo(org, { name: 'app' })
  await plantTag(pinfold, again.uid as string, 'v1', 'b')
  await logged(pinfold)
  const { entries, policy } = await readLog(operator, url, prefix)
  const parsed = entries.slice(1).map((entry) => parseEntry(entry)!)
  assert.equal(new Set(parsed.map(({ chain }) => chain)).size, 1)
  assert.deepEqual(
    parsed.map(({ seq }) => seq),
    [0, 1, 2],
  )
  const at = (time: string) => operator.get(`${prefix}/repos/${again.uid}/tags/v1/proof?at=${time}`)
  const first = (await at(parsed[0]!.time)).text
  assert.equal(provedBy(first, policy, claimOf(url, 'v1', 'a', parsed[0]!.time)).until, parsed[1]!.time)
  const gone = (await at(parsed[1]!.time)).text
  assert.throws(() => provedBy(gone, policy, claimOf(url, 'v1', 'a', parsed[1]!.time)), /deleted at/)
})

test('a log longer than one tile has full tiles, and proofs over several tiles', async () => {
  const { pinfold, repo, prefix } = await scene()
  await using _ = pinfold
  const { operator, url } = pinfold
  const [a, b] = [await plantManifest(pinfold, repo, 'a'), await plantManifest(pinfold, repo, 'b')]
  const start = Date.parse('2026-01-01T00:00:00.000Z')
  const records = Array.from({ length: 600 }, (_, i) => ({
    time: new Date(start + i * 60_000).toISOString(),
    digest: i % 2 === 0 ? a : b,
  }))
  const tags = [{ name: 'v1', records }]
  const imported = await operator.post('/control/v1/tagHistory:import', { repoUid: repo, tags })
  assert.equal(imported.status, 200, imported.text)
  await logged(pinfold)
  const { checkpoint, policy, entries } = await readLog(operator, url, prefix)
  assert.equal(checkpoint.size, 601)
  assert.equal(parseEntry(entries[300]!)!.kind, 'import')
  const check = async () => {
    for (const i of [0, 254, 255, 256, 511, 598]) {
      const at = records[i]!.time
      const { text } = await operator.get(`${prefix}/repos/${repo}/tags/v1/proof?at=${at}`)
      const proved = provedBy(text, policy, claimOf(url, 'v1', i % 2 === 0 ? 'a' : 'b', at))
      assert.deepEqual([proved.from, proved.until, proved.kind], [at, records[i + 1]!.time, 'import'])
    }
  }
  await check()

  // The same tiles with more entries, beside the tiles of another log.
  const other = await pinfold.seed.group('', { name: 'other' })
  const beside = (await pinfold.seed.repo(other.uid as string, { name: 'app' })).uid as string
  for (const image of ['a', 'b']) {
    for (const one of [repo, beside]) await plantTag(pinfold, one, 'v2', image)
    await logged(pinfold)
    await check()
    const at = (await ledgerOf(pinfold, beside)).at(-1)!.time
    const { text } = await operator.get(`/ledger/${other.uid}/repos/${beside}/tags/v2/proof`)
    const ofOther = parsePolicy((await operator.get(`/ledger/${other.uid}/policy`)).text)
    assert.equal(provedBy(text, ofOther, { ...claimOf(url, 'v2', image, at), path: 'other/app' }).from, at)
  }
})

test('after a restore, the former log is not signed again, and a new log has a new name and all entries', async () => {
  const { pinfold, repo, prefix } = await scene()
  await using _ = pinfold
  const { app, operator, url } = pinfold
  const { updateTime } = await plantTag(pinfold, repo, 'v1', 'a')
  await logged(pinfold)
  const former = await readLog(operator, url, prefix)
  const before = (await operator.get(`${prefix}/checkpoint`)).text
  await app.db.tx((tx) => endLogs(tx, 'every'))
  await plantTag(pinfold, repo, 'v1', 'b')
  await logged(pinfold)

  assert.equal((await operator.get(`${prefix}/checkpoint`)).text, before)
  const [newest] = parsePolicy((await operator.get(`${prefix}/policy`)).text).logs
  assert.match(newest!.name, new RegExp(`^${former.checkpoint.origin}/2-[0-9a-f]{8}$`))
  const { entries, policy, checkpoint } = await readLog(operator, url, pathOf(newest!.name))
  const { size, root } = former.checkpoint
  assert.equal(checkpoint.size, 3)
  assert.equal(entries[0]!.split('\n')[3], `${former.checkpoint.origin} ${size} ${root.toString('hex')}`)
  assert.equal(policy.logs.length, 2)
  assert.deepEqual(
    entries.slice(1).map((entry) => parseEntry(entry)!.kind),
    ['backfill', 'live'],
  )
  const proof = (await operator.get(`${prefix}/repos/${repo}/tags/v1/proof?at=${updateTime}`)).text
  assert.equal(provedBy(proof, policy, claimOf(url, 'v1', 'a', updateTime as string)).origin, checkpoint.origin)
})

test('erasing a tag history deletes the contents of its log entries, and does not change the log otherwise', async () => {
  const { pinfold, repo, prefix } = await scene()
  await using _ = pinfold
  const { app, operator, url } = pinfold
  await plantTag(pinfold, repo, 'v1', 'a')
  await logged(pinfold)
  const { checkpoint } = await readLog(operator, url, prefix)
  assert.equal((await operator.delete(`/registry/v2/repos/${repo}`)).status, 200)
  const erased = await operator.post('/control/v1/ledgers:erase', { repoUid: repo })
  assert.equal(erased.status, 200, erased.text)
  for (const table of ['ledger_openings', 'ledger_pending']) {
    assert.equal(await app.db.get(sql`SELECT 1 AS found FROM ${ident(table)}`), undefined, table)
  }
  await logged(pinfold)
  assert.deepEqual((await readLog(operator, url, prefix)).checkpoint, checkpoint)
})

test('a new key signs together with the former key for 30 days, and the log names the new key', async () => {
  let later = 0
  const clock = () => new Date(Date.now() + later)
  const { pinfold, org, repo, prefix } = await scene({ clock })
  await using _ = pinfold
  const { app, operator, url } = pinfold
  const rotate = (organizationUid: string) => operator.post('/control/v1/ledgerLogs:rotateKey', { organizationUid })
  assert.equal((await rotate(org)).status, 404)
  const { updateTime: at } = await plantTag(pinfold, repo, 'v1', 'a')
  await logged(pinfold)
  const former = parsePolicy((await operator.get(`${prefix}/policy`)).text)
  const { key } = (await rotate(org)).body
  const [entry] = (await operator.get(`/events/v2/audit?subject=${org}`)).body.auditEntries.filter(
    ({ type }: { type: string }) => type.endsWith('.ledger.key_rotated.v1'),
  )
  assert.deepEqual(JSON.parse(entry.body), { key })
  await plantTag(pinfold, repo, 'v1', 'b')
  await logged(pinfold)

  const keysNow = async () => parsePolicy((await operator.get(`${prefix}/policy`)).text)
  const proof = async () => (await operator.get(`${prefix}/repos/${repo}/tags/v1/proof?at=${at}`)).text
  const claim = claimOf(url, 'v1', 'a', at as string)
  const { logs } = await keysNow()
  assert.deepEqual([logs.length, vkeyOf(logs[1]!)], [2, key])
  const both = await proof()
  // A client that has only one of the two policies accepts the proof.
  for (const one of [former, { ...former, logs: [logs[1]!] }]) assert.equal(provedBy(both, one, claim).size, 4)
  const bundle = (await operator.get(`${prefix}/tile/entries/000.p/4`)).text
  assert.ok(bundle.includes(`pinfold-key/1\n${key}\n`))

  later = 31 * 24 * 3_600_000
  const token = await pinfold.tokenFor(operatorUid, { now: clock() })
  await plantTag({ ...pinfold, operator: pinfold.withToken(token) }, repo, 'v1', 'c')
  await runJob(app, sequenceLedgers)
  const client = pinfold.withToken(token)
  const policy = parsePolicy((await client.get(`${prefix}/policy`)).text)
  assert.deepEqual(policy.logs.map(vkeyOf), [key])
  const text = (await client.get(`${prefix}/repos/${repo}/tags/v1/proof?at=${at}`)).text
  assert.equal(provedBy(text, policy, claim).size, 5)
  assert.throws(() => provedBy(text, former, claim), /not signed with a log key/)
})

test('signs checkpoints while rows keep arriving', async () => {
  const { pinfold, repo, prefix } = await scene()
  await using _ = pinfold
  const { app, operator } = pinfold
  let count = 0
  await plantTag(pinfold, repo, 'first')
  const lease = {
    ...withoutLease(app),
    async inBatches(batch: (tx: Tx) => Promise<number>) {
      for (let found = 1; found > 0; ) {
        await plantTag(pinfold, repo, `t${count++}`, 'a')
        if (count > 100) throw new Error('it goes on as long as rows come')
        found = await app.db.tx(batch)
      }
      return 1
    },
  }
  await sequenceLedgers.run(app, lease as unknown as Lease)
  assert.equal((await operator.get(`${prefix}/checkpoint`)).status, 200)
})

test('a new row during the import of older rows does not prevent their import', async () => {
  const { pinfold, repo } = await scene()
  await using _ = pinfold
  const { app, operator } = pinfold
  const digest = await plantManifest(pinfold, repo, 'a')
  const tags = Array.from({ length: 700 }, (_, i) => {
    const name = `t${String(i).padStart(4, '0')}`
    return { name, records: [{ time: '2026-01-01T00:00:00.000Z', digest }] }
  })
  const imported = await operator.post('/control/v1/tagHistory:import', { repoUid: repo, tags })
  assert.equal(imported.status, 200, imported.text)
  await app.db.tx(async (tx) => {
    await tx.run(sql`DELETE FROM ledger_pending`)
    await tx.run(sql`INSERT INTO ledger_backfills (ledger_id, after_tag, after_time) SELECT id, '', '' FROM ledgers`)
  })
  let isFirst = true
  await app.db.tx(async (tx) => {
    const meanwhile: Tx = Object.create(tx, {
      run: {
        async value(query: Sql) {
          if (isFirst) {
            isFirst = false
            await tx.run(sql`
              INSERT INTO tag_history (repo_id, tag, time, event, digest, previous_digest, media_type, size, actor, source)
              SELECT repo_id, 't0000x', time, event, digest, previous_digest, media_type, size, actor, source
                FROM tag_history WHERE tag = 't0000'`)
          }
          return tx.run(query)
        },
      },
    })
    await backfillSome(meanwhile)
  })
  await logged(pinfold)
  const left = await app.db.all(sql`
    SELECT h.tag FROM tag_history h
     WHERE NOT EXISTS (SELECT 1 FROM ledger_openings o WHERE o.tag = h.tag AND o.time = h.time)`)
  assert.deepEqual(left, [])
})

test('a proof for a path does not cover another repository that gets the path after a rename', async () => {
  const pinfold = await startPinfold()
  await using _ = pinfold
  const { operator, url } = pinfold
  const org = (await pinfold.seed.group('', { name: 'acme' })).uid as string
  const [a, c] = [await pinfold.seed.group(org, { name: 'a' }), await pinfold.seed.group(org, { name: 'c' })]
  const [one, two] = [await pinfold.seed.repo(a.uid, { name: 'app' }), await pinfold.seed.repo(c.uid, { name: 'app' })]
  const first = (await plantTag(pinfold, one.uid, 'v1', 'x')).updateTime as string
  const second = (await plantTag(pinfold, two.uid, 'v1', 'w')).updateTime as string
  const rename = async (uid: string, name: string) => {
    const answer = await operator.patch(`/iam/v2/groups/${uid}?updateMask=name`, { name })
    assert.equal(answer.status, 200, answer.text)
  }
  await logged(pinfold)
  await rename(a.uid, 'b')
  await rename(c.uid, 'a')
  const third = (await plantTag(pinfold, two.uid, 'v1', 'y')).updateTime as string
  await logged(pinfold)
  const policy = parsePolicy((await operator.get(`/ledger/${org}/policy`)).text)
  const proved = async (repo: string, at: string, path: string, image: string) => {
    const { text } = await operator.get(`/ledger/${org}/repos/${repo}/tags/v1/proof?at=${at}`)
    return provedBy(text, policy, { ...claimOf(url, 'v1', image, at), path })
  }
  assert.equal((await proved(one.uid, first, 'acme/a/app', 'x')).until, '')
  assert.equal((await proved(two.uid, second, 'acme/c/app', 'w')).until, '')
  assert.equal((await proved(two.uid, third, 'acme/a/app', 'y')).until, '')
})

test('a missing earlier entry ends the chain of a tag, so proofs claim nothing about the time between', async () => {
  const { pinfold, repo, prefix } = await scene()
  await using _ = pinfold
  const { app, operator, url } = pinfold
  const { updateTime: at } = await plantTag(pinfold, repo, 'v1', 'a')
  await logged(pinfold)
  await plantTag(pinfold, repo, 'v1', 'b')
  await app.db.tx((tx) => tx.run(sql`DELETE FROM ledger_pending`))
  await plantTag(pinfold, repo, 'v1', 'c')
  await logged(pinfold)
  const { policy, entries } = await readLog(operator, url, prefix)
  assert.deepEqual(
    entries.slice(1).map((entry) => parseEntry(entry)!.seq),
    [0, 0],
  )
  const { text } = await operator.get(`${prefix}/repos/${repo}/tags/v1/proof?at=${at}`)
  assert.equal(provedBy(text, policy, claimOf(url, 'v1', 'a', at as string)).until, '')
})

test('processes organizations fairly; entries added again keep their path and their import mark', async () => {
  const { pinfold, repo, prefix } = await scene()
  await using _ = pinfold
  const { app, operator } = pinfold
  const other = (await pinfold.seed.group('', { name: 'other' })).uid as string
  const small = (await pinfold.seed.repo(other, { name: 'app' })).uid as string
  const digest = await plantManifest(pinfold, repo, 'a')
  const tags = Array.from({ length: 300 }, (_, i) => {
    return { name: `t${i}`, records: [{ time: '2026-01-01T00:00:00.000Z', digest }] }
  })
  assert.equal((await operator.post('/control/v1/tagHistory:import', { repoUid: repo, tags })).status, 200)
  await plantTag(pinfold, small, 'v1', 'a')
  await app.db.tx((tx) => sequenceSome(tx, app, 'host.example'))
  const waiting = await app.db.all<{ tag: string }>(sql`SELECT tag FROM ledger_pending`)
  assert.ok(waiting.length > 100 && !waiting.some(({ tag }) => tag === 'v1'))
  await logged(pinfold)

  await app.db.tx((tx) => endLogs(tx, 'every'))
  const team = (await operator.patch(`/iam/v2/groups/${repo.split('/')[0]}?updateMask=name`, { name: 'renamed' }))
    .status
  assert.equal(team, 200)
  await logged(pinfold)
  const [newest] = parsePolicy((await operator.get(`${prefix}/policy`)).text).logs
  const { text } = await operator.get(`${pathOf(newest!.name)}/checkpoint`)
  assert.equal(parseCheckpoint(parseNote(text)!.text)!.size, 301)
  const paths = await app.db.all<{ path: string }>(sql`SELECT DISTINCT path FROM ledger_openings WHERE tag LIKE 't%'`)
  assert.deepEqual(paths, [{ path: 'acme/app' }])
  const kinds = await app.db.all<{ entry: string }>(sql`
    SELECT e.entry FROM ledger_entries e JOIN ledger_openings o ON o.log_id = e.log_id AND o.idx = e.idx WHERE o.tag = 't7'`)
  assert.equal(parseEntry(kinds[0]!.entry)!.kind, 'import')
})

test('members who can list the tags of one repository can read the log policy and the checkpoint for its proofs', async () => {
  const { pinfold, org, repo, prefix } = await scene()
  await using _ = pinfold
  const identity = (await pinfold.seed.identity(org)).uid as string
  await plantTag(pinfold, repo, 'v1')
  await logged(pinfold)
  const team = (await pinfold.seed.group(org, { name: 'team' })).uid as string
  await pinfold.seed.binding(team, identity, roleUids.viewer)
  const client = await pinfold.as(identity)
  const paths = ['policy', 'checkpoint', 'tile/0/000.p/1'].map((path) => `${prefix}/${path}`)
  const statuses = await Promise.all(paths.map(async (path) => (await client.get(path)).status))
  assert.deepEqual(statuses, [200, 200, 403])
})
