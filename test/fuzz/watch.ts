// A day of an upstream whose tags move all the time, watched each quarter of an hour: every move that outlived an interval is
// in the ledger, the interval of each row has a move to its digest, and no manifest is asked for. By hand:
// bin/pinfold-node test/fuzz/watch.ts --tags 1000 --moves 10000. On PostgreSQL when PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { sql } from '#db/sql.ts'
import { followUpstreams } from '#domains/registry/follows/follows.duty.ts'
import { runDuty } from '../support/duties.ts'
import { ok } from '../support/expect.ts'
import { randomFrom } from '../support/random.ts'
import { startRegistry } from '../support/registry.ts'
import { digestOf } from '../support/tags.ts'
import { localUpstreams, startUpstream } from '../support/upstream.ts'

const { values } = parseArgs({
  options: {
    tags: { type: 'string', default: '1000' },
    moves: { type: 'string', default: '10000' },
    hours: { type: 'string', default: '24' },
    seed: { type: 'string' },
  },
})
const seed = Number(values.seed ?? Date.now() % 1_000_000)
console.log(`--seed ${seed}`)
const random = randomFrom(seed)
const intervalMs = 15 * 60_000
const [tags, wanted, lastMs] = [Number(values.tags), Number(values.moves), Number(values.hours) * 3_600_000]

type Move = { tag: string; at: number; digest: string }
const names = Array.from({ length: tags }, (_, i) => `t${i}`)
/** Times are milliseconds since the beginning; half of the moves are of a tenth of the tags. */
const moves: Move[] = names.map((tag) => ({ tag, at: 0, digest: digestOf(`${tag} 0`) }))
for (let i = 0; i < wanted; i++) {
  const tag = names[random.below(i % 2 ? tags : Math.ceil(tags / 10))]!
  moves.push({ tag, at: 1 + random.below(lastMs), digest: digestOf(`${tag} ${i + 1}`) })
}
moves.sort((one, other) => one.at - other.at)

let shift = 0
await using registry = await startRegistry({ ...localUpstreams, monotonic: () => performance.now() * 1000 + shift })
await using there = await startUpstream()
const { app, operator, org, seed: seeds } = registry
const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, { name: 'there', url: there.url }))
const repo = (await seeds.repo(org.uid, { name: 'watched' })).uid as string
const following = { upstreamUid: upstream.uid, path: 'app', interval: `${intervalMs / 1000}s` }
const begin = Date.now()
const later = { ...app, clock: () => new Date(Date.now() + shift) }
/** What the clock of the server said when a move came. */
const seenFrom = new Map<Move, number>()
let next = 0
let looks = 0
for (; shift <= lastMs + 2 * intervalMs; shift += intervalMs) {
  for (; next < moves.length && moves[next]!.at <= shift; next++) {
    const move = moves[next]!
    seenFrom.set(move, later.clock().getTime())
    there.tags.set(move.tag, move.digest)
  }
  if (shift === 0) ok(await operator.post(`/registry/v2/repos/${repo}/follow`, following))
  looks += (await runDuty(later, followUpstreams)).looks as number
}

type Row = { tag: string; time: string; digest: string; before: string | null }
const rows = await app.db.all<Row>(sql`
  SELECT h.tag, h.time, h.digest, o.checked_before AS "before"
    FROM tag_history h JOIN repos r ON r.ledger_id = h.repo_id
    LEFT JOIN tag_observations o ON o.repo_id = h.repo_id AND o.tag = h.tag AND o.time = h.time
   WHERE r.uid = ${repo} ORDER BY h.tag, h.time`)
const byTag = Map.groupBy(moves, ({ tag }) => tag)
const rowsOf = new Map(rows.map((row) => [`${row.tag} ${row.digest}`, row]))
let [outlived, missing, wrong] = [0, 0, 0]
for (const own of byTag.values()) {
  for (const [i, move] of own.entries()) {
    const row = rowsOf.get(`${move.tag} ${move.digest}`)
    // It was there for at least one look in between, however the looks fall.
    if ((own[i + 1]?.at ?? Number.POSITIVE_INFINITY) - move.at > intervalMs) {
      outlived++
      if (!row) missing++
    }
    // The first look at a tag has no look before.
    const isFirst = move.at === 0
    const came = seenFrom.get(move)!
    if (
      row &&
      (Date.parse(row.time) < came || (isFirst ? row.before !== null : !(Date.parse(row.before ?? '') <= came)))
    ) {
      wrong++
    }
  }
}
const gets = there.asked.filter((one) => one.startsWith('GET') && !one.endsWith('/tags/list')).length
console.log(
  `${tags} tags, ${wanted} moves, ${looks} looks in ${Math.round((Date.now() - begin) / 1000)} s: ${rows.length} rows, ` +
    `${outlived} moves outlived an interval, ${missing} of them missing, ${wrong} intervals without their move, ${gets} GETs`,
)
assert.deepEqual([missing, wrong, gets], [0, 0, 0])
assert.ok(outlived >= tags, 'otherwise nothing was tried')
