// What tags stand for in views, for random histories: the server reads as little as it can of each, and must answer what
// the whole history says.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { findRepoRow, type RepoRow } from '#domains/registry/repos/repos.store.ts'
import { insertRecords } from '#domains/registry/tags/tag-history.store.ts'
import { type Question, type Resolved, resolveTag } from '#domains/registry/views/resolve.service.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { type Random, randomFrom } from '../support/random.ts'
import { plantManifest } from '../support/tags.ts'
import { times } from '../support/times.ts'
import { type Asked, judge, type Move, type Verdict } from '../support/view-oracle.ts'

const hour = 3_600_000
const start = Date.parse('2026-01-01T00:00:00.000Z')
const iso = (time: number): string => new Date(time).toISOString()

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

let repos = 0
async function newRepo(digests: number): Promise<{ repo: RepoRow; digests: string[] }> {
  const org = await pinfold.seed.group('', { name: `org${repos++}` })
  const { uid } = await pinfold.seed.repo(org.uid)
  const planted: string[] = []
  for (let i = 0; i < digests; i++) planted.push(await plantManifest(pinfold, uid, `image ${i}`))
  return { repo: (await findRepoRow(pinfold.app.db, { uid }))!, digests: planted }
}

/** Writes to the ledger what happened. */
async function write(repo: RepoRow, tag: string, moves: readonly Move[]): Promise<void> {
  const records = moves.map(({ time, digest }, i) => {
    const previousDigest = moves[i - 1]?.digest ?? ''
    const event = digest === '' ? 'deleted' : previousDigest === '' ? 'created' : 'moved'
    const held = digest === '' ? previousDigest : digest
    return { tag, time: iso(time), event, digest: held, previousDigest, actor: '', source: 'oci' } as const
  })
  await pinfold.app.db.tx((tx) => insertRecords(tx, repo, records))
}

/** Steps of minutes, hours and days, so that stays are of all lengths; now and then a deletion, or the way back. */
function randomMoves(random: Random, digests: readonly string[]): Move[] {
  const moves: Move[] = []
  let time = start + random.below(48) * hour
  for (let i = 1 + random.below(24); i > 0; i--) {
    const last = moves.at(-1)?.digest ?? ''
    const others = digests.filter((one) => one !== last)
    const deletes = last !== '' && random.below(8) === 0
    moves.push({ time, digest: deletes ? '' : others[random.below(others.length)]! })
    time += [1 + random.below(90) * 60_000, random.below(12) * hour + 1, random.below(5) * 24 * hour + 1][
      random.below(3)
    ]!
  }
  return moves
}

function verdictOf(resolved: Resolved): Verdict {
  if (!resolved.chosen) return resolved.why
  return { digest: resolved.chosen.digest, since: Date.parse(resolved.chosen.since) }
}

function questionOf({ at, age, hold = 0, anyTag }: Asked): Question {
  const countFrom = anyTag ? 'repo' : 'tag'
  return { until: iso(at), age: age === undefined ? undefined : { ms: age, hold, countFrom } }
}

function randomQuestion(random: Random, tag: string): Asked {
  const at = start + random.below(60 * 24) * hour
  if (random.below(4) === 0) return { tag, at }
  const ages = [1, 6, 24, 3 * 24, 7 * 24, 20 * 24]
  const age = ages[random.below(ages.length)]! * hour
  return { tag, at, age, hold: [1, 6, 24][random.below(3)]! * hour, anyTag: random.below(3) === 0 }
}

test('random histories resolve as their whole history says, at any moment, age and hold', async () => {
  const seed = Number(process.env.PINFOLD_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))
  const random = randomFrom(seed)
  const verdicts = new Map<string, number>()
  for (let round = 0; round < 30 * times; round++) {
    const { repo, digests } = await newRepo(7)
    const gone = digests.pop()!
    await pinfold.app.db.tx(async (tx) => {
      await tx.run(sql`DELETE FROM manifests WHERE repo_id = ${repo.id} AND digest = ${gone}`)
    })
    const history = new Map<string, Move[]>()
    for (const tag of ['a', 'b', 'c']) {
      history.set(tag, randomMoves(random, [...digests, gone]))
      await write(repo, tag, history.get(tag)!)
    }
    for (let i = 0; i < 70; i++) {
      const asked = randomQuestion(random, ['a', 'b', 'c'][random.below(3)]!)
      const expected = judge(history, new Set(digests), asked)
      const answer = verdictOf(await resolveTag(pinfold.app.db, repo, asked.tag, questionOf(asked)))
      assert.deepEqual(answer, expected, `seed ${seed}, round ${round}: ${JSON.stringify(asked)}`)
      const kind = typeof expected === 'string' ? expected : 'served'
      verdicts.set(kind, (verdicts.get(kind) ?? 0) + 1)
    }
  }
  assert.deepEqual([...verdicts.keys()].sort(), ['deleted', 'gone', 'no tag', 'served', 'young'])
})

test('a nightly tag yields an image of seven to eight days on each of ninety days after the first eight', async () => {
  const { repo, digests } = await newRepo(90)
  for (let round = 0; round < 4 * times; round++) {
    const tag = `nightly-${round}`
    // Each at an hour of its own.
    const first = start + round * 7 * 60_000
    await write(
      repo,
      tag,
      digests.map((digest, day) => ({ time: first + day * 24 * hour, digest })),
    )
    for (let now = first + 8 * 24 * hour; now < first + 90 * 24 * hour; now += 13 * hour) {
      const asked = { tag, at: now, age: 7 * 24 * hour, hold: 6 * hour }
      const answer = verdictOf(await resolveTag(pinfold.app.db, repo, tag, questionOf(asked)))
      assert.ok(typeof answer !== 'string', `nothing is served on ${iso(now)}`)
      const age = now - answer.since
      assert.ok(age >= 7 * 24 * hour && age < 8 * 24 * hour, `${age / hour} hours on ${iso(now)}`)
    }
  }
})

test('hundreds of moves are looked through as a few are', async () => {
  const { repo, digests } = await newRepo(300)
  const [good, other] = [digests[0]!, digests[1]!]
  // A good image for a month, then one that changes back and forth every few minutes, then ever new ones.
  const flapping = Array.from({ length: 400 }, (_, i) => ({
    time: start + 30 * 24 * hour + i * 300_000,
    digest: i % 2 ? good : other,
  }))
  const fresh = digests.slice(2).map((digest, i) => ({ time: start + 40 * 24 * hour + i * 60_000, digest }))
  const moves = [{ time: start, digest: good }, ...flapping, ...fresh]
  await write(repo, 'busy', moves)
  const history = new Map([['busy', moves]])
  for (const days of [29, 33, 40.1, 47.2, 48]) {
    for (const age of [hour, 24 * hour, 7 * 24 * hour]) {
      const asked = { tag: 'busy', at: start + days * 24 * hour, age, hold: 6 * hour }
      const answer = verdictOf(await resolveTag(pinfold.app.db, repo, 'busy', questionOf(asked)))
      assert.deepEqual(answer, judge(history, new Set(digests), asked), JSON.stringify(asked))
    }
  }
})
