// Random rules over random histories: the server deletes exactly the manifests that a simple reading of the rules gives, and so
// does an applied plan.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { DeletionDecisions } from '#domains/policy/retention/deletable.service.ts'
import { sweepRetention } from '#domains/policy/retention/plans.job.ts'
import { RetentionSearch } from '#domains/policy/retention/protection.service.ts'
import { contentRulesAt, type Retention, toContentRules } from '#domains/policy/retention/retention.model.ts'
import { findRepoRow, type RepoRow } from '#domains/registry/repos/repos.store.ts'
import { assignTag, removeTagNamed } from '#domains/registry/tags/tag-moves.service.ts'
import { ownCause } from '#lib/cause.ts'
import { newUid } from '#lib/uid.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { type Random, randomFrom } from '../support/random.ts'
import { digestOf } from '../support/tags.ts'
import { times } from '../support/times.ts'

const day = 86_400_000
/** Ages are a whole number of days plus one hour, so no date equals the current time. */
const begin = Date.now() - 3_600_000
const daysAgo = (days: number): string => new Date(begin - days * day).toISOString()

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

type Image = { digest: string; age: number; subject: string; lists: string[] }
type Assignment = { tag: string; digest: string; began: number; left: number | undefined }
type World = { repo: RepoRow; images: Image[]; stays: Assignment[] }

/** The last tag is the cosign name for the signature of the first image. */
const tagsOf = ([first]: readonly Image[]): string[] => {
  return ['v1', 'v2', 'nightly', 'stable', `${first!.digest.replace(':', '-')}.sig`]
}
/** Digest that the name of a signature tag refers to. Undefined for other tags. */
const namedBy = (tag: string): string | undefined =>
  tag.endsWith('.sig') ? tag.slice(0, -4).replace('-', ':') : undefined

async function makeWorld(random: Random, name: number): Promise<World> {
  const org = await pinfold.seed.group()
  const { uid } = await pinfold.seed.repo(org.uid)
  const repo = (await findRepoRow(pinfold.app.db, { uid }))!
  const images: Image[] = []
  const some = (): string => images[random.below(images.length)]!.digest
  for (let i = 0; i < 12; i++) {
    const kind = images.length < 3 ? 'image' : ['image', 'index', 'signature'][random.below(3)]
    const lists = kind === 'index' ? [...new Set([some(), some()])] : []
    images.push({
      digest: digestOf(`${name} ${i}`),
      age: 40 - i * 3 - random.below(3),
      subject: kind === 'signature' ? some() : '',
      lists,
    })
  }
  for (const image of images) await plant(repo, image)
  return { repo, images, stays: await moveTags(random, repo, images) }
}

async function plant(repo: RepoRow, { digest, age, subject, lists }: Image): Promise<void> {
  await pinfold.app.db.tx(async (tx) => {
    await tx.run(sql`
      INSERT INTO manifests
             (repo_id, digest, media_type, artifact_type, subject, size, annotations, create_time, content)
      VALUES (${repo.id}, ${digest}, 'application/json', '', ${subject}, 1, '{}', ${daysAgo(age)}, ${Buffer.from('1')})`)
    for (const listed of lists) {
      await tx.run(sql`
        INSERT INTO manifest_links (repo_id, digest, manifest, kind) VALUES (${repo.id}, ${listed}, ${digest}, 1)`)
    }
  })
}

async function moveTags(random: Random, repo: RepoRow, images: readonly Image[]): Promise<Assignment[]> {
  const stays: Assignment[] = []
  const { app } = pinfold
  const tags = tagsOf(images)
  for (let age = 30; age > 0; age -= 1 + random.below(3)) {
    const tag = tags[random.below(tags.length)]!
    const digest = images[random.below(images.length)]!.digest
    const mover = { repo, name: tag, now: daysAgo(age), actor: '', source: 'api' } as const
    const present = stays.find((stay) => stay.tag === tag && stay.left === undefined)
    const isDeletion = present !== undefined && random.below(4) === 0
    if (!isDeletion && present?.digest === digest) continue
    if (isDeletion) await app.db.tx((tx) => removeTagNamed(tx, { app, cause: ownCause(app.clock) }, mover))
    else await app.db.tx((tx) => assignTag(tx, { app }, { ...mover, digest }))
    if (present) present.left = age
    if (!isDeletion) stays.push({ tag, digest, began: age, left: undefined })
  }
  return stays
}

function someRules(random: Random): Retention[] {
  return Array.from({ length: 1 + random.below(3) }, (): Retention => {
    const says = { keepDaysAfter: random.below(3) * 6, keepLast: random.below(6), untaggedDays: random.below(3) * 10 }
    const forever = random.below(12) === 0
    const isNothing = says.keepDaysAfter + says.keepLast + says.untaggedDays === 0 && !forever
    return {
      name: '',
      ...says,
      forever,
      tags: [[], ['v*'], ['nightly', 'stable'], ['v1']][random.below(4)]!,
      exceptTags: random.below(3) === 0 ? ['stable'] : [],
      mode: 'ENFORCE',
      ...(isNothing ? { keepLast: 1 } : {}),
    }
  })
}

function isAbout({ tags: named, exceptTags }: Retention, tag: string): boolean {
  if (exceptTags.includes(tag)) return false
  return named.length === 0 || named.some((name) => (name === 'v*' ? tag.startsWith('v') : name === tag))
}

/** A simple evaluation over the whole history. Ages are in days, plus one hour. */
function letGo({ images, stays }: World, rules: readonly Retention[]): string[] {
  const lastOf = (rule: Retention): string[] => {
    const counted = stays.filter(({ tag }) => isAbout(rule, tag) && namedBy(tag) === undefined)
    const newest = counted.toSorted((a, b) => a.began - b.began)
    return [...new Set(newest.map(({ digest }) => digest))].slice(0, rule.keepLast)
  }
  const verdictOf = ({ digest, age }: Image): 'kept' | 'expired' | 'silent' => {
    const own = stays.filter((stay) => stay.digest === digest)
    if (own.some(({ left }) => left === undefined)) return 'kept'
    if (rules.some((rule) => lastOf(rule).includes(digest))) return 'kept'
    if (own.length === 0) {
      const dated = rules.filter(({ untaggedDays }) => untaggedDays > 0)
      if (dated.length === 0) return 'silent'
      return dated.some(({ untaggedDays }) => untaggedDays > age) ? 'kept' : 'expired'
    }
    for (const { tag, left } of own) {
      const about = rules.filter((rule) => isAbout(rule, tag))
      if (about.some(({ forever, keepDaysAfter }) => forever || keepDaysAfter > left!)) return 'kept'
      if (!about.some(({ keepDaysAfter, keepLast }) => keepDaysAfter > 0 || keepLast > 0)) return 'kept'
    }
    return 'expired'
  }
  const aboveOf = ({ digest, subject }: Image): string[] => [
    ...(subject === '' ? [] : [subject]),
    ...stays.filter((stay) => stay.digest === digest).flatMap(({ tag }) => namedBy(tag) ?? []),
    ...images.filter(({ lists }) => lists.includes(digest)).map((index) => index.digest),
  ]
  // Two manifests that belong to each other are both kept, because neither can be deleted first.
  const goes = new Set<string>()
  for (let before = -1; before < goes.size; ) {
    before = goes.size
    for (const image of images) {
      const [above, verdict] = [aboveOf(image).filter((one) => one !== image.digest), verdictOf(image)]
      const isPart = above.length > 0 || verdict !== 'silent'
      if (verdict !== 'kept' && isPart && above.every((one) => goes.has(one))) goes.add(image.digest)
    }
  }
  return [...goes].sort()
}

async function judged({ repo, images }: World, rules: readonly Retention[]): Promise<string[]> {
  const { db, clock } = pinfold.app
  const times = { createTime: '', updateTime: '' }
  const scoped = rules.map((says) => ({ uid: newUid(repo.uid), scopeUid: repo.uid, says, ...times }))
  const contentRules = toContentRules({ rules: scoped, tagRules: [], holds: [], quarantined: [] })
  const judging = new DeletionDecisions(
    new RetentionSearch(db, contentRulesAt(contentRules, repo.uid), repo, clock().toISOString()),
  )
  const goes: string[] = []
  for (const { digest } of images) if (await judging.of(digest)) goes.push(digest)
  return goes.sort()
}

test('random rules select what a simple evaluation selects, and an applied plan deletes only that', async (t) => {
  const seed = Number(process.env.PINFOLD_SEED ?? 20_261_123)
  t.diagnostic(`PINFOLD_SEED=${seed} scripts/test.ts test/api/registry.retention.random.test.ts`)
  const random = randomFrom(seed)
  const { operator, app } = pinfold
  let gone = 0
  for (let round = 0; round < 8 * times; round++) {
    const world = await makeWorld(random, round)
    for (let i = 0; i < 20; i++) {
      const rules = someRules(random)
      const expected = letGo(world, rules)
      gone += expected.length
      assert.deepEqual(await judged(world, rules), expected, `round ${round}: ${JSON.stringify(rules)}`)
    }
    const rules = someRules(random)
    const { uid } = world.repo
    for (const says of rules) ok(await operator.post(`/registry/v2/retentionRules/${uid}`, says))
    const plan = ok(await operator.post(`/registry/v2/retentionPlans/${uid}`, {}))
    await runJob(app, sweepRetention)
    const { deletions } = ok(await operator.get(`/registry/v2/retentionPlans/${plan.uid}/deletions`))
    const expected = letGo(world, rules)
    assert.deepEqual(deletions.map(({ digest }: Json) => digest).sort(), expected, `round ${round}`)
    ok(await operator.post(`/registry/v2/retentionPlans/${plan.uid}:apply`, {}))
    await runJob(app, sweepRetention)
    const left = await app.db.all<{ digest: string }>(sql`
      SELECT digest FROM manifests WHERE repo_id = ${world.repo.id} ORDER BY digest`)
    const kept = world.images.map(({ digest }) => digest).filter((digest) => !expected.includes(digest))
    assert.deepEqual(
      left.map(({ digest }) => digest),
      kept.sort(),
      `round ${round}`,
    )
  }
  assert.ok(gone > 100, 'otherwise nothing was tried')
})
