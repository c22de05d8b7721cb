// Deletes a repository with many tags while other clients write. Measures the longest of their writes and the longest transaction
// of the deletion. To run it by hand:
//   bin/pinfold-node test/fuzz/removal.ts --tags 100000
// With --uploads 100 --pieces 1000, the repository also has unfinished uploads. It uses PostgreSQL if PINFOLD_TEST_DATABASE names
// one. With --check it fails if a write was blocked for more than 100 ms.
import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Db, Tx } from '#db/sql.ts'
import { sql } from '#db/sql.ts'
import { removeRepos } from '#domains/registry/deletions/removals.job.ts'
import { atOnce } from '../support/at-once.ts'
import { startRegistry } from '../support/registry.ts'

const { values } = parseArgs({
  options: {
    tags: { type: 'string', default: '100000' },
    uploads: { type: 'string', default: '0' },
    /** Size of the piece of each upload: one byte. */
    pieces: { type: 'string', default: '1000' },
    check: { type: 'boolean', default: false },
  },
})
const [tags, uploads, pieces] = [Number(values.tags), Number(values.uploads), Number(values.pieces)]
await using registry = await startRegistry({ jobs: [removeRepos] })
const { app, pusher, operator, org } = registry
const image = await pusher.pushImage('acme/large', 'first')
await pusher.pushImage('acme/other', 'first')
const body = (await pusher.ok(200, 'GET', `acme/large/manifests/${image.digest}`)).bytes
const headers = { 'content-type': image.mediaType }
const filled = performance.now()
await atOnce(16, tags, (i) => pusher.ok(201, 'PUT', `acme/large/manifests/t${i}`, { body, headers }))
await atOnce(16, uploads, async () => {
  const location = String((await pusher.ok(202, 'POST', 'acme/large/blobs/uploads/')).headers.location)
  for (let i = 0; i < pieces; i++) await pusher.ok(202, 'PATCH', location, { body: 'x' })
})
console.log(
  `${app.db.engine}: ${tags} tags and ${uploads} uploads in ${((performance.now() - filled) / 1000).toFixed(0)} s`,
)

/** Times for which each transaction of this server occupied the writer or a connection. */
const held: { ms: number; statements: number }[] = []
const plain = app.db.tx
const db = app.db as { tx: Db['tx'] }
db.tx = (work, options) =>
  plain(async (tx: Tx) => {
    const began = performance.now()
    let statements = 0
    const counted: Tx = {
      ...tx,
      all(query) {
        statements++
        return tx.all(query)
      },
      get(query) {
        statements++
        return tx.get(query)
      },
      run(query) {
        statements++
        return tx.run(query)
      },
    }
    try {
      return await work(counted)
    } finally {
      held.push({ ms: performance.now() - began, statements })
    }
  }, options)

const [repo] = (await operator.get(`/registry/v2/repos?uidp.descendantsOf=${org.uid}&name=large`)).body.repos as [
  { uid: string },
]
const others: number[] = []
const { bytes: otherBody } = await pusher.ok(200, 'GET', 'acme/other/manifests/first')
let isOver = false
const writing = (async () => {
  for (let i = 0; !isOver; i++) {
    const began = performance.now()
    await pusher.ok(201, 'PUT', `acme/other/manifests/o${i % 100}`, { body: otherBody, headers })
    others.push(performance.now() - began)
    await sleep(5)
  }
})()
const began = performance.now()
const deleted = await operator.delete(`/registry/v2/repos/${repo.uid}`)
assert.equal(deleted.status, 200, deleted.text)
const acknowledged = performance.now() - began
const left = async () => (await app.db.get<{ n: number }>(sql`SELECT count(*) AS n FROM repo_removals`))!.n
while ((await left()) > 0) await sleep(50)
const took = performance.now() - began
isOver = true
await writing
held.sort((a, b) => b.ms - a.ms)
others.sort((a, b) => a - b)
const at = (share: number) => others[Math.min(others.length - 1, Math.floor(others.length * share))] ?? 0
console.log(
  `acknowledged in ${acknowledged.toFixed(0)} ms, all gone in ${(took / 1000).toFixed(1)} s and ${held.length} transactions; ` +
    `the longest took ${held[0]!.ms.toFixed(1)} ms (${held[0]!.statements} statements), then ${held
      .slice(1, 4)
      .map(({ ms }) => ms.toFixed(1))
      .join(
        ', ',
      )}; others wrote ${others.length} times, p50 ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms, longest ${at(1).toFixed(1)} ms`,
)
if (values.check) assert.ok(held[0]!.ms <= 100, 'something held the writer for more than 100 ms')
