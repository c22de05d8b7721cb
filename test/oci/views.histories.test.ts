// Tags in views, for random histories. The server reads as little as possible of each history, and caches results. Its responses
// must agree with the complete history.
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import {
  type Question,
  type Resolved,
  resolveTag,
  type Served,
  type Unresolved,
} from '#domains/policy/views/resolve.service.ts'
import { findRepoRow, lockRepoRow, type RepoRow } from '#domains/registry/repos/repos.store.ts'
import { insertRecords } from '#domains/registry/tags/tag-history.store.ts'
import { assignTag } from '#domains/registry/tags/tag-moves.service.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { ok } from '../support/expect.ts'
import { onPostgres, roleUids } from '../support/pinfold.ts'
import { oneOf, type Random, randomFrom, seedOf } from '../support/random.ts'
import { codeOf, digestOf, indexOf, startRegistry, type TestRegistry } from '../support/registry.ts'
import { plantManifest } from '../support/tags.ts'
import { times } from '../support/times.ts'
import { type Asked, type Contents, heldUntil, judge, type Move, type Verdict } from '../support/view-oracle.ts'

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]
const start = Date.parse('2026-01-01T00:00:00.000Z')
const iso = (time: number): string => new Date(time).toISOString()

let now = start
/** Monotonic clock, which alone makes cached entries expire. */
let monotonic = 0
let registry: TestRegistry
before(async () => {
  registry = await startRegistry({ clock: () => new Date(now), monotonic: () => monotonic })
})
after(() => registry[Symbol.asyncDispose]())

const randomOf = (t: TestContext): { seed: number; random: Random } => {
  const seed = seedOf(t)
  return { seed, random: randomFrom(seed) }
}

/** A repository, the whole history of its tags, and its contents. */
type Scene = {
  name: string
  repo: RepoRow
  history: Map<string, Move[]>
  contents: Contents & { quarantined: Map<string, string> }
}

let repos = 0
/** The clock restarts with each repository. */
async function newScene(tags: readonly string[] = []): Promise<Scene> {
  now = start
  const short = `app${repos++}`
  const { uid } = await registry.seed.repo(registry.org.uid, { name: short })
  const repo = (await findRepoRow(registry.app.db, { uid }))!
  const history = new Map(tags.map((tag) => [tag, []]))
  return { name: `acme/${short}`, repo, history, contents: { came: new Map(), quarantined: new Map() } }
}

/** Manifests pushed at these times. */
async function plant({ name, repo, contents }: Scene, cameAt: readonly number[]): Promise<string[]> {
  const before = now
  const digests: string[] = []
  for (const [i, time] of cameAt.entries()) {
    now = time
    const digest = await plantManifest(registry, repo.uid, `${name} ${i}`)
    contents.came.set(digest, time)
    digests.push(digest)
  }
  now = before
  return digests
}

/** Writes the moves to the tag history. */
async function write({ repo, history }: Scene, tag: string, moves: Move[]): Promise<void> {
  history.set(tag, moves)
  const records = moves.map(({ time, digest, source }, i) => {
    const previousDigest = moves[i - 1]?.digest ?? ''
    const event = digest === '' ? 'deleted' : previousDigest === '' ? 'created' : 'moved'
    const held = digest === '' ? previousDigest : digest
    return { tag, time: iso(time), event, digest: held, previousDigest, actor: '', source: source ?? 'oci' } as const
  })
  await registry.app.db.tx((tx) => insertRecords(tx, repo, records))
}

/**
 * Steps of minutes, hours and days, so that tags keep their digests for different times. Now and then a deletion or a rollback.
 */
function randomMoves(random: Random, digests: readonly string[]): Move[] {
  const moves: Move[] = []
  let time = start + random.below(48) * hour
  for (let i = 1 + random.below(24); i > 0; i--) {
    const last = moves.at(-1)?.digest ?? ''
    const deletes = last !== '' && random.below(8) === 0
    moves.push({
      time,
      digest: deletes
        ? ''
        : oneOf(
            random,
            digests.filter((one) => one !== last),
          ),
    })
    time += randomSpan(random, 5)
  }
  return moves
}

function randomSpan(random: Random, days: number): number {
  return oneOf(random, [1 + random.below(90) * minute, random.below(12) * hour + 1, random.below(days) * day + 1])
}

function verdictOf(resolved: Resolved | Served | Unresolved): Verdict {
  if (!resolved.chosen) return resolved.why
  const { digest, since, imported } = resolved.chosen
  return { digest, since: Date.parse(since), imported }
}

function questionOf({ at, age, hold = 0, anyTag, accepted = [] }: Asked, isNow: boolean): Question {
  const countFrom = anyTag ? 'repo' : 'tag'
  return { until: iso(at), isNow, age: age === undefined ? undefined : { ms: age, hold, countFrom }, accepted }
}

/** Draws a random request about tags, without its time. */
function randomQuestion(random: Random, tags: readonly string[], digests: readonly string[]): Omit<Asked, 'at'> {
  const tag = oneOf(random, tags)
  if (random.below(4) === 0) return { tag }
  const age = oneOf(random, [1, 6, 24, 3 * 24, 7 * 24, 20 * 24]) * hour
  const hold = oneOf(random, [1, 6, 24]) * hour
  const accepted = random.below(6) === 0 ? [oneOf(random, digests)] : []
  return { tag, age, hold, anyTag: random.below(3) === 0, accepted }
}

/** Servers that share a database do not cache results that depend on other tags. */
const isKept = ({ age, anyTag }: Asked): boolean => !(onPostgres && age !== undefined && anyTag)

/** Resolves the tag once directly and twice by a pull. Returns the expected and the served digest. */
async function ask({ repo, history, contents }: Scene, asked: Asked, isNow: boolean, about: string) {
  const question = questionOf(asked, isNow)
  const expected = judge(history, contents, asked)
  const why = `${about}: ${JSON.stringify(asked)}`
  assert.deepEqual(verdictOf(await resolveTag(registry.app.db, repo, asked.tag, question)), expected, why)
  const held = heldUntil(history, contents, asked)
  const given: Served[] = []
  for (const turn of ['first', 'second']) {
    const served = await registry.app.views.of(repo, asked.tag, question)
    assert.deepEqual(verdictOf(served), expected, `${turn}, ${why}`)
    if (!served.chosen) continue
    assert.equal(served.latest.since, iso(history.get(asked.tag)!.findLast(({ time }) => time <= asked.at)!.time), why)
    assert.equal(served.heldUntil, held === undefined ? '' : iso(held), `${turn}, ${why}`)
    given.push(served)
  }
  if (given.length > 0) assert.equal(given[0] === given[1], isKept(asked), `what is served is remembered, ${why}`)
  return { expected, served: given[0] }
}

function countKind(verdicts: Map<string, number>, verdict: Verdict) {
  const kind = typeof verdict === 'string' ? verdict : verdict.imported ? 'imported' : 'served'
  verdicts.set(kind, (verdicts.get(kind) ?? 0) + 1)
}
const kinds = ['deleted', 'gone', 'imported', 'no tag', 'served', 'young']

test('random tag histories resolve to the correct digest for each time, age and hold', async (t) => {
  const { seed, random } = randomOf(t)
  const verdicts = new Map<string, number>()
  const tags = ['a', 'b', 'c']
  for (let round = 0; round < 15 * times; round++) {
    const scene = await newScene()
    const digests = await plant(
      scene,
      Array.from({ length: 8 }, () => start + random.below(40 * 24) * hour),
    )
    await remove(scene, digests[7]!)
    await quarantine(scene, random, digests[6]!)
    for (const tag of tags) {
      const moves = randomMoves(random, digests)
      const [kind, imported] = [random.below(3), random.below(moves.length + 1)]
      if (kind === 1) for (const move of moves.slice(0, imported)) move.source = 'import'
      if (kind === 2) for (const move of moves) move.source = 'upstream'
      await write(scene, tag, moves)
    }
    for (let i = 0; i < 70; i++) {
      const asked = { ...randomQuestion(random, tags, digests), at: start + random.below(60 * 24) * hour }
      const { expected } = await ask(scene, asked, false, `seed ${seed}, round ${round}`)
      countKind(verdicts, expected)
    }
    await releaseAll(scene)
  }
  assert.deepEqual([...verdicts.keys()].sort(), kinds)
})

/** Tokens expire after less than a day. */
const door = () => registry.registryAs(operatorUid)

function note({ history }: Scene, tag: string, move: Omit<Move, 'time'>) {
  const moves = history.get(tag)!
  if ((moves.at(-1)?.digest ?? '') !== move.digest) moves.push({ time: now, ...move })
}
const digestIn = ({ history }: Scene, tag: string): string => history.get(tag)!.at(-1)?.digest ?? ''

async function push(scene: Scene, text: string, tag?: string) {
  const { digest } = await (await door()).pushManifest(scene.name, text, tag)
  if (!scene.contents.came.has(digest)) scene.contents.came.set(digest, now)
  if (tag !== undefined) note(scene, tag, { digest })
}

async function remove(scene: Scene, digest: string) {
  await (await door()).ok(202, 'DELETE', `${scene.name}/manifests/${digest}`)
  scene.contents.came.delete(digest)
  for (const tag of scene.history.keys()) if (digestIn(scene, tag) === digest) note(scene, tag, { digest: '' })
}

async function removeTag(scene: Scene, tag: string) {
  await (await door()).ok(202, 'DELETE', `${scene.name}/manifests/${tag}`)
  note(scene, tag, { digest: '' })
}

async function quarantine({ repo, contents }: Scene, random: Random, digest: string) {
  const scope = oneOf(random, [registry.org.uid, repo.uid])
  const api = await registry.as(operatorUid)
  const mark = { digest, reason: 'it mines coins' }
  const { uid } = ok(await api.post(`/registry/v2/quarantined/${scope}:quarantine`, mark))
  contents.quarantined.set(digest, uid)
}

async function release({ contents }: Scene, digest: string) {
  const uid = contents.quarantined.get(digest)!
  ok(await (await registry.as(operatorUid)).post(`/registry/v2/quarantined/${uid}:release`))
  contents.quarantined.delete(digest)
}

/** Releases all quarantined digests, because their number in an organization is limited. */
async function releaseAll(scene: Scene) {
  for (const digest of scene.contents.quarantined.keys()) await release(scene, digest)
}

/** Acts like a mirror: the content may be copied later, or never. */
async function seeUpstream(scene: Scene, tag: string, digest: string) {
  const { app } = registry
  const by = { now: iso(now), actor: '', source: 'upstream' } as const
  await app.db.tx(async (tx) => {
    const repo = (await lockRepoRow(tx, scene.repo.uid, 'alone'))!
    await assignTag(tx, { app }, { ...by, repo, name: tag, digest })
  })
  note(scene, tag, { digest, source: 'upstream' })
}

/** Makes one random change through its entry point, every other time to the digest in `served`. */
async function change(scene: Scene, random: Random, texts: ReadonlyMap<string, string>, served = '') {
  const some = (list: readonly string[]) =>
    list.includes(served) && random.below(2) === 0 ? served : oneOf(random, list)
  const { contents, history } = scene
  const all = [...texts.keys()]
  const present = all.filter((one) => contents.came.has(one))
  const free = all.filter((one) => !contents.quarantined.has(one))
  const tagged = [...history.keys()].filter((tag) => digestIn(scene, tag) !== '')
  const possible: (() => Promise<void>)[] = [
    () => push(scene, oneOf(random, [...texts.values()]), oneOf(random, own)),
    () => push(scene, oneOf(random, [...texts.values()]), oneOf(random, own)),
    () => push(scene, oneOf(random, [...texts.values()])),
    ...(history.has(seen) ? [() => seeUpstream(scene, seen, oneOf(random, all))] : []),
    ...(tagged.length > 0 ? [() => removeTag(scene, oneOf(random, tagged))] : []),
    ...(present.length > 2 ? [() => remove(scene, some(present))] : []),
    ...(free.length > 2 ? [() => quarantine(scene, random, some(free))] : []),
    ...(free.length < all.length ? [() => release(scene, oneOf(random, [...contents.quarantined.keys()]))] : []),
  ]
  await oneOf(random, possible)()
}
const own = ['a', 'b']
/** Follows an upstream. */
const seen = 'seen'

/** A repository with some images, and tags whose first weeks were imported. */
async function beginLife(random: Random, isFollowing: boolean) {
  const scene = await newScene(isFollowing ? [...own, seen] : own)
  const texts = new Map<string, string>()
  for (let i = 0; i < 6; i++) {
    const text = JSON.stringify(indexOf([], { annotations: { image: `${scene.name} ${i}` } }))
    texts.set(digestOf(text), text)
  }
  for (const text of [...texts.values()].slice(2)) await push(scene, text)
  now += 30 * day
  for (const tag of own) {
    const moves = randomMoves(random, [...texts.keys()]).filter(({ time, digest }) => time < now && digest !== '')
    const imported = moves.filter(({ digest }, i) => digest !== moves[i - 1]?.digest)
    scene.history.set(
      tag,
      imported.map((move) => ({ ...move, source: 'import' })),
    )
  }
  const tags = own.map((name) => ({
    name,
    records: scene.history.get(name)!.map(({ time, digest }) => ({ time: iso(time), digest })),
  }))
  const api = await registry.as(operatorUid)
  ok(await api.post('/control/v1/tagHistory:import', { repoUid: scene.repo.uid, tags }))
  return { scene, texts }
}

/** Advances by minutes, hours or days, or until an image gets old enough, or just before. */
function moveClock(random: Random, { history, contents }: Scene, ages: readonly number[]) {
  const begins = [...[...history.values()].flat().map(({ time }) => time), ...contents.came.values()]
  const due = begins.flatMap((time) => ages.map((age) => time + age)).filter((time) => time > now + 1)
  now = random.below(3) === 0 && due.length > 0 ? Math.min(...due) - random.below(2) : now + randomSpan(random, 3)
}

/** For the current time, unless the request has a time. */
type Remembered = Omit<Asked, 'at'> & { moment?: number }

/** Requests that differ in one value, so that none may return the cached response of another. */
function questionsOf(random: Random, tags: readonly string[], digests: readonly string[]): Remembered[] {
  return tags.flatMap((tag) => {
    const aged = { tag, age: oneOf(random, [24, 3 * 24, 7 * 24]) * hour, hold: hour, anyTag: false }
    const moment = start + random.below(60 * 24) * hour
    return [
      aged,
      { ...aged, age: 2 * aged.age },
      { ...aged, hold: 24 * hour },
      { ...aged, anyTag: true },
      { ...aged, accepted: [oneOf(random, digests)] },
      { ...aged, moment },
      { tag, moment },
      { tag },
    ]
  })
}

test('cached results of random tag histories stay correct, whatever changes between requests', async (t) => {
  const { seed, random } = randomOf(t)
  const verdicts = new Map<string, number>()
  const old = new WeakSet<Served>()
  let remembered = 0
  for (let round = 0; round < 6 * times; round++) {
    const isFollowing = round % 2 === 1
    const { scene, texts } = await beginLife(random, isFollowing)
    const tags = [...scene.history.keys()]
    const pool = questionsOf(random, tags, [...texts.keys()])
    const ages = pool.flatMap(({ age }) => age ?? [])
    let question = oneOf(random, pool)
    for (let step = 0; step < 70; step++) {
      moveClock(random, scene, ages)
      // The server may cache the arrival of upstream content for some seconds, so this cache expires first.
      if (isFollowing) monotonic += 5000
      const about = `seed ${seed}, round ${round}, step ${step}`
      const answer = async ({ moment, ...rest }: Remembered) => {
        const asked = { ...rest, at: Math.min(moment ?? now, now) }
        const { expected, served } = await ask(scene, asked, moment === undefined, about)
        countKind(verdicts, expected)
        if (served && old.has(served)) remembered++
        if (served) old.add(served)
        return served?.chosen.digest
      }
      // Repeats the same request some time later, and then sends an almost equal one.
      if (random.below(2) === 0) question = oneOf(random, pool)
      const served = await answer(question)
      if (random.below(2) === 0) await change(scene, random, texts, served)
      const alike = pool.filter(({ tag }) => tag === question.tag)
      for (const one of [question, oneOf(random, alike)]) await answer(one)
    }
    await releaseAll(scene)
  }
  assert.deepEqual([...verdicts.keys()].sort(), kinds)
  assert.ok(remembered > 20 * times, `${remembered} answers were those of before`)
})

/** The pushes of a tag, and the images that stay good, each with the time of its tag update. */
type Nights = { moves: Move[]; kept: Map<string, number> }

/**
 * Draws ninety nights with a push at about the same hour, some of them missed. Sometimes a push is corrected within hours, or
 * undone hours or days later by a move back to a good image.
 */
function randomNights(random: Random, first: number, digests: readonly string[]): Nights {
  const [moves, kept]: [Move[], Map<string, number>] = [[], new Map()]
  const next = digests.values()
  const put = (time: number, digest: string) => moves.push({ time, digest })
  const timeOf = (night: number): number => first + night * day + random.below(4 * hour)
  let time = timeOf(0)
  for (let night = 0; night < 90; ) {
    const missed = random.below(8) > 0 ? 0 : 1 + random.below(random.below(4) > 0 ? 3 : 12)
    night += 1 + missed
    const following = timeOf(night)
    put(time, next.next().value!)
    for (let left = 2; left > 0 && random.below(5) === 0; left--) {
      time += 10 * minute + random.below(5 * hour)
      put(time, next.next().value!)
    }
    const undone = random.below(10) === 0 && kept.size > 0
    if (undone) {
      const span = Math.min(following - time - 2 * hour, 6 * day)
      put(time + hour + random.below(span), oneOf(random, [...kept.keys()].slice(-3)))
    } else kept.set(moves.at(-1)!.digest, time)
    time = following
  }
  return { moves, kept }
}

/** At each hour, and for each image just before it is old enough, and at that time. */
function asksOf(random: Random, { moves, kept }: Nights): number[] {
  const asks = [...kept.values()].flatMap((time) => [time + week - 1, time + week])
  const [first, last] = [moves[0]!.time, moves.at(-1)!.time]
  for (let time = first; time < last + 8 * day; time += random.below(26 * hour) + 1) asks.push(time)
  return asks.filter((time) => time < first + 90 * day).sort((a, b) => a - b)
}
const week = 7 * day

/**
 * Digest that must be served at a time: the newest good image that became the tag at least a week ago. A missed night makes it a
 * day older. One exists from a week after the first good image, which is pushed on the first day.
 */
function nightlyAt({ moves, kept }: Nights, now: number): Move | undefined {
  return moves.findLast(
    ({ time, digest }) => time <= now && (kept.get(digest) ?? Number.POSITIVE_INFINITY) <= now - week,
  )
}

test('an age view of a nightly tag serves no image before day eight, however many builds failed', async (t) => {
  const { seed, random } = randomOf(t)
  const scene = await newScene()
  const digests = await plant(
    scene,
    Array.from({ length: 270 }, () => start),
  )
  for (let round = 0; round < 4 * times; round++) {
    const tag = `nightly-${round}`
    // Each request at a different hour.
    const nights = randomNights(random, start + round * 7 * minute, digests)
    const [{ time: first }] = nights.moves as [Move]
    await write(scene, tag, nights.moves)
    for (const at of asksOf(random, nights)) {
      const asked = { tag, at, age: week, hold: 6 * hour }
      const expected = nightlyAt(nights, at)
      const about = `seed ${seed}, ${tag} on ${iso(at)}`
      assert.ok(expected || at < first + 8 * day, `nothing is good, ${about}`)
      const answer = verdictOf(await resolveTag(registry.app.db, scene.repo, tag, questionOf(asked, false)))
      assert.deepEqual(
        answer,
        expected ? { digest: expected.digest, since: expected.time, imported: false } : 'young',
        about,
      )
    }
  }
})

test('a bound caller pulls the nightly tag with its age, and others pull the newest image', async (t) => {
  const { seed, random } = randomOf(t)
  const names = Array.from({ length: 1 + Math.floor(times / 10) }, (_, i) => `nightly-${i}`)
  const scene = await newScene(names)
  const runner = (await registry.seed.member(registry.org.uid, roleUids.pull)).uid as string
  const given = { identities: [runner], minAge: '7d', mode: 'SERVE_OLDER' }
  ok(await (await registry.as(operatorUid)).post(`/registry/v2/pullRules/${scene.repo.uid}`, given))
  const happens = names.flatMap((tag, i): { time: number; run: () => Promise<void> }[] => {
    const texts = new Map<string, string>()
    for (let image = 0; image < 270; image++) {
      const text = JSON.stringify(indexOf([], { annotations: { image: `${scene.name}:${tag} ${image}` } }))
      texts.set(digestOf(text), text)
    }
    const nights = randomNights(random, start + i * 7 * minute, [...texts.keys()])
    const pushes = nights.moves.map(({ time, digest }) => {
      return { time, run: () => pushNightly(scene, tag, texts.get(digest)!) }
    })
    const pulls = asksOf(random, nights).map((time) => ({
      time,
      run: () => pullNightly(scene, tag, nights, runner, seed),
    }))
    return [...pushes, ...pulls]
  })
  for (const { time, run } of happens.sort((a, b) => a.time - b.time)) {
    now = time
    await run()
  }
})

async function pushNightly(scene: Scene, tag: string, text: string) {
  await push(scene, text, tag)
  const free = await registry.registryAs(registry.puller.uid)
  const { headers } = await free.ok(200, 'HEAD', `${scene.name}/manifests/${tag}`)
  assert.equal(headers['docker-content-digest'], digestOf(text), 'whom no rule binds has it at once')
}

async function pullNightly(
  { name, history, contents }: Scene,
  tag: string,
  nights: Nights,
  runner: string,
  seed: number,
) {
  const path = `${name}/manifests/${tag}`
  const expected = nightlyAt(nights, now)
  const about = `seed ${seed}, ${tag} on ${iso(now)}`
  const oracle = judge(history, contents, { tag, at: now, age: week, hold: 6 * hour })
  assert.deepEqual(typeof oracle === 'string' ? undefined : oracle.digest, expected?.digest, about)
  assert.ok(expected || now < nights.moves[0]!.time + 8 * day, `nothing is good, ${about}`)
  const reply = await (await registry.registryAs(runner)).call('GET', path)
  assert.equal(reply.status, expected ? 200 : 403, about)
  if (expected) assert.equal(reply.headers['docker-content-digest'], expected.digest, about)
  else assert.equal(codeOf(reply), 'DENIED')
}

test('a held-back digest is served according to its first day under any tag, however often it was tagged since', async () => {
  const scene = await newScene()
  const [good, fresh, other] = (await plant(scene, [start, start, start])) as [string, string, string]
  const flapping = Array.from({ length: 17 }, (_, i) => ({
    time: start + 11 * day + i * 6 * hour,
    digest: i % 2 ? other : fresh,
  }))
  await write(scene, 'a', [{ time: start, digest: good }, ...flapping])
  await write(scene, 'z', [{ time: start + 10 * day, digest: fresh }])
  const asked = { tag: 'a', at: start + 16 * day, age: week, hold: hour, anyTag: true }
  assert.equal((await ask(scene, asked, true, 'flapping')).served?.heldUntil, iso(start + 17 * day))
})

test('hundreds of tag updates need as few queries as a few updates', async () => {
  const scene = await newScene()
  const digests = await plant(
    scene,
    Array.from({ length: 300 }, () => start),
  )
  const [good, other] = [digests[0]!, digests[1]!]
  // A good image for a month, then one that alternates every few minutes, then always new images.
  const flapping = Array.from({ length: 400 }, (_, i) => ({
    time: start + 30 * day + i * 300_000,
    digest: i % 2 ? good : other,
  }))
  const fresh = digests.slice(2).map((digest, i) => ({ time: start + 40 * day + i * 60_000, digest }))
  await write(scene, 'busy', [{ time: start, digest: good }, ...flapping, ...fresh])
  for (const days of [29, 33, 40.1, 47.2, 48]) {
    for (const age of [hour, day, 7 * day]) {
      await ask(scene, { tag: 'busy', at: start + days * day, age, hold: 6 * hour }, false, 'busy')
    }
  }
})
