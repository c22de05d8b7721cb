// Simulates a day of upstreams whose tags are updated continuously. The mirrors check them every quarter of an hour. The tag
// history must contain exactly the results of these checks. The time interval of each record must contain the update and be as
// short as possible, and no content may be requested. Two of the upstreams serve a tag history, which must be requested once for
// each update. To run it by hand:
//   bin/pinfold-node test/fuzz/watch.ts --tags 1000 --moves 10000
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { sql } from '#db/sql.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { requestHistories } from '#domains/mirrors/follows/histories.job.ts'
import { eventNumbers } from '#domains/registry/tags/tag-history.model.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { randomFrom } from '../support/random.ts'
import { startRegistry } from '../support/registry.ts'
import { drafting, telling } from '../support/reported-history.ts'
import { digestOf, ledgerOf } from '../support/tags.ts'
import { answering, type Fault, localUpstreams, startUpstream } from '../support/upstream.ts'

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

/**
 * A move of a tag. `at` is its planned time, from the beginning of the run. `time` is its real time, by the clock of the server.
 */
type Move = { tag: string; at: number; digest: string; time: number }
const names = Array.from({ length: tags }, (_, i) => `t${i}`)
/** Half of the moves affect one tenth of the tags. */
const moves: Move[] = names.map((tag) => ({ tag, at: 0, digest: digestOf(`${tag} 0`), time: Number.NaN }))
const taken = new Set<string>()
for (let i = 0; i < wanted; i++) {
  const tag = names[random.below(i % 2 ? tags : Math.ceil(tags / 10))]!
  const at = 1 + random.below(lastMs)
  if (taken.has(`${tag} ${at}`)) continue
  taken.add(`${tag} ${at}`)
  moves.push({ tag, at, digest: digestOf(`${tag} ${i + 1}`), time: Number.NaN })
}
moves.sort((one, other) => one.at - other.at)

let shift = 0
const now = () => Date.now() + shift
const clock = () => new Date(now())
await using registry = await startRegistry({
  ...localUpstreams,
  clock,
  monotonic: () => performance.now() * 1000 + shift,
})
const { app, operator, org, seed: seeds } = registry

/** Moves so far, by tag and in order. */
const happened = new Map<string, Move[]>(names.map((tag) => [tag, []]))
/** Answers to the checks in order. Also the times of checks that found no tag although it existed. */
const answered = new Map<string, string[]>(names.map((tag) => [tag, []]))
const missed = new Map<string, number[]>(names.map((tag) => [tag, []]))
/** Moves that happen while the server checks the same tag. */
const underWay = new Map<string, Move>()
const tagOf = (url = ''): string => /\/([^/?]+)(?:\?.*)?$/.exec(url)?.[1] ?? ''
const isoOf = (time: number): string => new Date(time).toISOString()

const ways: Record<string, Fault> = {
  service: (req, res) =>
    telling(() => {
      return (happened.get(tagOf(req.url)) ?? []).map(({ time, digest }) => ({ updateTimestamp: isoOf(time), digest }))
    })(req, res),
  draft: (req, res) => {
    const own = happened.get(tagOf(req.url)) ?? []
    const told = own.map(({ time, digest }, i) => ({ time: isoOf(time), digest, event: i ? 'updated' : 'created' }))
    return drafting(told.reverse())(req, res)
  },
  nothing: () => false,
}

async function watched(way: string, tells: Fault) {
  const there = await startUpstream()
  const happen = (move: Move, time: number): void => {
    move.time = time
    happened.get(move.tag)!.push(move)
    there.tags.set(move.tag, move.digest)
  }
  const say = (res: ServerResponse, tag: string, digest: string): void => {
    answered.get(tag)!.push(digest)
    res.writeHead(200, { 'docker-content-digest': digest }).end()
  }
  const sayLate = async (res: ServerResponse, tag: string, move: Move): Promise<void> => {
    const before = there.tags.get(tag)!
    await sleep(2)
    happen(move, now())
    await sleep(2)
    say(res, tag, random.below(2) ? before : move.digest)
  }
  const wasMissed = new Set<string>()
  there.breakWith((req, res) => {
    if (req.method !== 'HEAD') return tells(req, res)
    const tag = tagOf(req.url)
    const move = underWay.get(tag)
    underWay.delete(tag)
    if (move) void sayLate(res, tag, move)
    else if (shift > 0 && !wasMissed.delete(tag) && random.below(100) === 0) {
      wasMissed.add(tag)
      missed.get(tag)!.push(now())
      answering(404)(req, res)
    } else say(res, tag, there.tags.get(tag)!)
    return true
  })
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, { name: way, url: there.url }))
  const repo = (await seeds.repo(org.uid, { name: way })).uid as string
  const follow = () => {
    const body = { upstreamUid: upstream.uid, path: 'app', interval: `${intervalMs / 1000}s` }
    return operator.post(`/registry/v2/repos/${repo}/follow`, body).then(ok)
  }
  return { way, there, repo, happen, follow, [Symbol.asyncDispose]: () => there[Symbol.asyncDispose]() }
}
await using all = new AsyncDisposableStack()
const upstreams = await Promise.all(
  Object.entries(ways).map(async ([way, tells]) => all.use(await watched(way, tells))),
)
const homeOf = new Map(names.map((tag, i) => [tag, upstreams[i % upstreams.length]!]))

const begin = Date.now()
let [next, looks, told, rounds, longestMs] = [0, 0, 0, 0, 0]
let ended = now()
for (; shift <= lastMs + 2 * intervalMs; shift += intervalMs) {
  // Moves that were planned between the last round and this one have happened at their times.
  const base = ended - (shift - intervalMs)
  const due: Move[] = []
  while (next < moves.length && moves[next]!.at <= shift) due.push(moves[next++]!)
  for (const [tag, some] of Map.groupBy(due, (move) => move.tag)) {
    if (shift > 0 && random.below(10) === 0) underWay.set(tag, some.pop()!)
    for (const move of some) homeOf.get(tag)!.happen(move, shift === 0 ? ended : base + move.at)
  }
  if (shift === 0) for (const { follow } of upstreams) await follow()
  const began = Date.now()
  looks += (await runJob(app, followUpstreams)).looks as number
  told += (await runJob(app, requestHistories)).told as number
  longestMs = Math.max(longestMs, Date.now() - began)
  assert.equal(underWay.size, 0, 'a tag was not looked at')
  rounds++
  ended = now()
}

/** Interval from a check to the one `count` checks later, which may be the first of its round and the last. */
const mostMs = (intervals: number): number => intervals * intervalMs + (intervals + 1) * longestMs
const counts = { rows: 0, outlived: 0, missing: 0, others: 0, wrong: 0, long: 0, told: 0, listUnannounced: 0 }
let longestInterval = 0
const collapsed = (digests: readonly string[]) => digests.filter((digest, i) => digest !== digests[i - 1])
for (const { way, repo } of upstreams) {
  const ledger = await ledgerOf(registry, repo)
  const observations = await app.db.all<{ tag: string; time: string; before: string }>(sql`
    SELECT o.tag, o.time, o.checked_before AS before
      FROM tag_observations o JOIN repos r ON r.ledger_id = o.repo_id WHERE r.uid = ${repo}`)
  const beforeOf = new Map(observations.map(({ tag, time, before }) => [`${tag} ${time}`, before]))
  const tellings = await app.db.all<{ tag: string; time: string; digest: string }>(sql`
    SELECT m.tag, m.time, m.digest FROM told_moves m JOIN repos r ON r.ledger_id = m.ledger_id
     WHERE r.uid = ${repo} ORDER BY m.tag, m.time`)
  const [rowsOf, toldOf] = [Map.groupBy(ledger, ({ tag }) => tag), Map.groupBy(tellings, ({ tag }) => tag)]
  counts.rows += ledger.length
  counts.told += tellings.length
  counts.others += ledger.filter(({ tag }) => homeOf.get(tag)?.way !== way).length
  for (const [tag] of [...homeOf].filter(([, home]) => home.way === way)) {
    const [own, rows] = [happened.get(tag)!, rowsOf.get(tag) ?? []]
    const seen = collapsed(answered.get(tag)!)
    for (const [i, move] of own.entries()) {
      const until = own[i + 1]?.time ?? Number.POSITIVE_INFINITY
      const isMissed = missed.get(tag)!.some((time) => time >= move.time && time <= until)
      if (isMissed || until - move.time <= mostMs(1)) continue
      counts.outlived++
      if (!rows.some(({ digest }) => digest === move.digest)) counts.missing++
    }
    const expected = seen.map((digest, i) => [i ? eventNumbers.moved : eventNumbers.created, digest, seen[i - 1] ?? ''])
    const found = rows.map(({ event, digest, previous }) => [event, digest, previous])
    if (JSON.stringify(found) !== JSON.stringify(expected)) counts.others++
    for (const [i, { time, digest }] of rows.entries()) {
      const move = own.find((one) => one.digest === digest)
      const before = beforeOf.get(`${tag} ${time}`)
      const [from, to] = [Date.parse(before ?? ''), Date.parse(time)]
      // The first check of a tag has no earlier check.
      const holds = i === 0 ? before === undefined : from <= (move?.time ?? Number.NaN)
      if (!holds || !(move && move.time <= to)) counts.wrong++
      if (i === 0) continue
      const intervals = missed.get(tag)!.some((one) => one >= from && one <= to) ? 2 : 1
      longestInterval = Math.max(longestInterval, to - from - (intervals - 1) * intervalMs)
      if (to - from > mostMs(intervals)) counts.long++
    }
    const past = way === 'nothing' ? [] : own.map(({ time, digest }) => ({ tag, time: isoOf(time), digest }))
    if (JSON.stringify(toldOf.get(tag) ?? []) !== JSON.stringify(past)) counts.listUnannounced++
  }
}

const kinds = {
  heads: /^HEAD \/v2\/app\/manifests\//,
  lists: /^GET \/v2\/app\/tags\/list$/,
  histories: /^GET \/v2\/app\/(?:_svc\/history|_oci\/tag-history)\//,
}
const asked = upstreams.flatMap(({ there }) => there.asked)
const countOf = (kind: RegExp, among: readonly string[] = asked) => among.filter((one) => kind.test(one)).length
const [heads, lists] = [countOf(kinds.heads), countOf(kinds.lists)]
const rest = asked.filter((one) => !Object.values(kinds).some((kind) => kind.test(one)))
const histories = Object.fromEntries(upstreams.map(({ way, there }) => [way, countOf(kinds.histories, there.asked)]))
const late = Math.round((Date.now() - begin) / 1000)
console.log(
  `${tags} tags, ${moves.length - tags} moves, ${looks} looks in ${late} s: ${JSON.stringify(counts)}; ` +
    `intervals of at most ${Math.round(longestInterval / 1000)} s where each look found the tag, rounds of at most ` +
    `${longestMs} ms; ${heads} HEADs, ${lists} lists, histories ${JSON.stringify(histories)}, ${rest.length} others`,
)
const { missing, others, wrong, long, listUnannounced } = counts
assert.deepEqual(
  { missing, others, wrong, long, listUnannounced },
  { missing: 0, others: 0, wrong: 0, long: 0, listUnannounced: 0 },
)
assert.deepEqual(rest, [], 'nothing else is asked for, and no content')
assert.equal(told, counts.told)
assert.ok(heads <= tags * rounds && lists <= upstreams.length * rounds, 'each tag is asked for once in an interval')
// Once for each move that was seen, and once to find out which way it tells; what tells nothing is asked in both ways once a day.
assert.ok(histories.service! + histories.draft! <= counts.rows + 2, 'histories')
assert.ok(histories.nothing! <= 2 * (Math.ceil(lastMs / 86_400_000) + 1), 'histories of who tells nothing')
assert.ok(counts.outlived >= tags && counts.rows > tags, 'otherwise nothing was tried')
