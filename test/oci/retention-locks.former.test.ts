// Dates of a retention rule stay after each change of the rules, also dates from rules that no longer exist.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { sweepRetention } from '#domains/policy/retention/plans.job.ts'
import { noEnd } from '#domains/policy/retention/retention.model.ts'
import { aboutTags } from '#domains/rules/patterns.model.ts'
import { operatorUid } from '#lib/uid.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertError, ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { oneOf, type Random, randomFrom, seedOf } from '../support/random.ts'
import type { RegistryClient } from '../support/registry.ts'
import { startRetentionLocks, type TestRepo } from '../support/retention-locks.ts'
import { plantManifest } from '../support/tags.ts'
import { times } from '../support/times.ts'

const [hour, day] = [3_600_000, 86_400_000]
const registry = await startRetentionLocks()
const { app, clock, owner, createRepo, pushing, rule } = registry
after(() => registry[Symbol.asyncDispose]())
const isoIn = (days: number): string => new Date(clock.now + days * day).toISOString()
const change = async (uid: string, body: Json): Promise<Json> =>
  ok(await (await owner()).patch(`/registry/v2/retentionRules/${uid}`, body))
const end = async (uid: string): Promise<Json> => ok(await (await owner()).delete(`/registry/v2/retentionRules/${uid}`))

/** Date until which the digest is kept, or empty without a date. */
async function untilOf({ repo }: TestRepo, digest: string): Promise<string> {
  const { reason, until } = ok(await (await owner()).get(`/registry/v2/repos/${repo}/promises/${digest}`))
  assert.ok(reason === undefined || reason === 'PROMISED', reason)
  return reason === undefined ? '' : (until ?? noEnd)
}

const formerIn = async (folder: string): Promise<number> => {
  const rows = await app.db.all(sql`SELECT 1 AS found FROM former_rules WHERE group_uid = ${folder}`)
  return rows.length
}

/** An image that the tag left before the first rule. */
async function leftBefore(at: TestRepo, tag = 'v1'): Promise<{ digest: string; client: RegistryClient }> {
  const client = await pushing()
  const { digest } = await client.pushImage(at.name, tag)
  clock.now += 1000
  await client.pushImage(at.name, tag)
  return { digest, client }
}

for (const [what, become] of Object.entries<(uid: string) => Promise<unknown>>({
  'is turned off': (uid) => change(uid, { mode: 'OFF' }),
  'only says what it would do': (uid) => change(uid, { mode: 'DRY_RUN' }),
  'is shortened': (uid) => change(uid, { keepDaysAfter: 1 }),
  'is about other tags': (uid) => change(uid, { tags: ['w*'] }),
  'excepts the tag': (uid) => change(uid, { exceptTags: ['v1'] }),
  'keeps the last instead': (uid) => change(uid, { keepDaysAfter: 0, keepLast: 1 }),
  'is deleted': end,
})) {
  test(`a digest that a tag left before the rule existed keeps its date when the rule ${what}`, async () => {
    const at = await createRepo()
    const { digest, client } = await leftBefore(at)
    const until = isoIn(40)
    const uid = await rule(at.folder, { tags: ['v*'], keepDaysAfter: 40 })
    assert.equal(await untilOf(at, digest), until)
    const told = async () => (await client.ok(200, 'GET', `${at.name}/manifests/${digest}`)).headers.sunset
    assert.equal(await told(), new Date(until).toUTCString())
    clock.now += day
    await become(uid)
    assert.equal(await untilOf(at, digest), until)
    const today = await pushing()
    const pulled = await today.ok(200, 'GET', `${at.name}/manifests/${digest}`)
    const mayBeLast = what === 'keeps the last instead'
    assert.equal(pulled.headers.sunset, mayBeLast ? undefined : new Date(until).toUTCString())
    const refused = await today.call('DELETE', `${at.name}/manifests/${digest}`)
    assert.deepEqual([refused.status, refused.body.errors[0].detail], [409, { until, rule: uid, tags: ['v1'] }])
    assert.equal((await (await owner()).delete(`/registry/v2/repos/${at.repo}`)).body.details[0].reason, 'CONTENT_KEPT')
    clock.now = Date.parse(until)
    await (await pushing()).ok(202, 'DELETE', `${at.name}/manifests/${digest}`)
  })
}

test('when a rule ends, the current digest of a tag stays protected for its time, but later digests are not', async () => {
  const at = await createRepo()
  const uid = await rule(at.folder, { keepDaysAfter: 10 })
  const client = await pushing()
  const { digest } = await client.pushImage(at.name, 'v1')
  clock.now += day
  const until = isoIn(10)
  assert.equal(await untilOf(at, digest), until)
  await change(uid, { mode: 'OFF' })
  clock.now += 5 * day
  const today = await pushing()
  const later = await today.pushImage(at.name, 'v1')
  clock.now += 1000
  await today.pushImage(at.name, 'v1')
  assert.deepEqual([await untilOf(at, digest), await untilOf(at, later.digest)], [until, ''])
  await today.ok(202, 'DELETE', `${at.name}/manifests/${later.digest}`)
  assert.equal((await today.call('DELETE', `${at.name}/manifests/${digest}`)).status, 409)
  clock.now = Date.parse(until)
  await (await pushing()).ok(202, 'DELETE', `${at.name}/manifests/${digest}`)
  ok(await (await owner()).delete(`/registry/v2/repos/${at.repo}`))
})

test('a rule change within the same millisecond keeps the date of a tag that was updated twice in it', async () => {
  const at = await createRepo()
  const uid = await rule(at.folder, { keepDaysAfter: 10 })
  const client = await pushing()
  await client.pushImage(at.name, 'v1')
  const { digest } = await client.pushImage(at.name, 'v1')
  const until = await untilOf(at, digest)
  await change(uid, { tags: ['w*'] })
  assert.ok((await untilOf(at, digest)) >= until, until)
})

test('a digest kept forever stays so until a member overrides the retention with a reason', async () => {
  const at = await createRepo()
  const { digest } = await leftBefore(at)
  const uid = await rule(at.folder, { tags: ['v*'], forever: true })
  assert.equal(await untilOf(at, digest), noEnd)
  await end(uid)
  clock.now += 1000 * day
  assert.equal(await untilOf(at, digest), noEnd)
  assert.equal((await (await pushing()).call('DELETE', `${at.name}/manifests/${digest}`)).status, 409)
  ok(
    await (await owner()).post(`/registry/v2/repos/${at.repo}:breakPromises`, {
      digest,
      reason: 'it has a secret in it',
    }),
  )
})

test('an untagged digest keeps its date when the rule ends, and when a tag is added and deleted', async () => {
  const at = await createRepo()
  const client = await pushing()
  const [one, other] = [await client.pushImage(at.name), await client.pushImage(at.name)]
  const until = isoIn(20)
  clock.now += day
  const uid = await rule(at.folder, { untaggedDays: 20 })
  for (const { digest } of [one, other]) assert.equal(await untilOf(at, digest), until)
  const repo = `/registry/v2/tags/${at.repo}`
  ok(await (await owner()).post(repo, { name: 'first', digest: one.digest }))
  await end(uid)
  ok(await (await owner()).post(repo, { name: 'second', digest: other.digest }))
  const today = await pushing()
  for (const tag of ['first', 'second']) await today.ok(202, 'DELETE', `${at.name}/manifests/${tag}`)
  for (const { digest } of [one, other]) assert.equal(await untilOf(at, digest), until)
  clock.now += 1000
  const late = await today.pushImage(at.name)
  assert.equal(await untilOf(at, late.digest), '', 'it came after the rule')
  const { body } = await (await owner()).delete(`/registry/v2/repos/${at.repo}`)
  assert.equal(body.details[0].reason, 'CONTENT_KEPT')
})

test('an untagged digest blocks deletion of its repository until its date, also of a former rule; tagged digests do not', async () => {
  const [tagged, both, former] = [await createRepo(), await createRepo(), await createRepo()]
  const client = await pushing()
  for (const { name } of [tagged, both, former]) await client.pushImage(name, 'v1')
  const { digest } = await client.pushImage(both.name)
  await client.pushImage(former.name)
  const until = isoIn(20)
  clock.now += day
  for (const at of [tagged, both]) await rule(at.folder, { untaggedDays: 20 })
  await end(await rule(former.folder, { untaggedDays: 20 }))
  const remove = async ({ repo }: TestRepo) => (await owner()).delete(`/registry/v2/repos/${repo}`)
  ok(await remove(tagged))
  for (const days of [0, 10]) {
    clock.now += days * day
    for (const at of [both, former]) {
      const { details, message } = (await remove(at)).body
      assert.deepEqual([details[0].reason, details[0].metadata.until], ['CONTENT_KEPT', until])
      if (at === both) assert.ok(message.includes(digest))
    }
  }
  clock.now = Date.parse(until) - 1
  for (const at of [both, former]) assert.equal((await remove(at)).status, 400)
  clock.now = Date.parse(until)
  for (const at of [both, former]) ok(await remove(at))
})

test('no deletion plan deletes a digest that a former rule protects, whatever the current rules are', async () => {
  const at = await createRepo()
  const { digest } = await leftBefore(at)
  const long = await rule(at.folder, { tags: ['v*'], keepDaysAfter: 400 })
  await rule(at.folder, { keepDaysAfter: 1 })
  await end(long)
  clock.now += 30 * day
  const planned = async (): Promise<string[]> => {
    const today = await owner()
    const plan = ok(await today.post(`/registry/v2/retentionPlans/${at.repo}`, {}))
    await runJob(app, sweepRetention)
    const { deletions = [] } = ok(await today.get(`/registry/v2/retentionPlans/${plan.uid}/deletions`))
    return deletions.map((one: Json) => one.digest)
  }
  assert.deepEqual(await planned(), [])
  clock.now += 400 * day
  assert.deepEqual(await planned(), [digest])
})

test('stores a former rule only if it gives later dates than its successors, and only until these dates', async () => {
  const at = await createRepo()
  const uid = await rule(at.folder, { keepDaysAfter: 10 })
  for (let i = 0; i < 3; i++) {
    for (const mode of ['OFF', 'ENFORCE']) await change(uid, { mode })
  }
  assert.equal(await formerIn(at.folder), 1, 'off and on again')
  await change(uid, { keepDaysAfter: 20 })
  assert.equal(await formerIn(at.folder), 1, 'a longer rule takes nothing back')
  await change(uid, { name: 'another name', mode: 'DRY_RUN' })
  assert.equal(await formerIn(at.folder), 1, 'the longer one says what the shorter one said')
  await change(uid, { keepDaysAfter: 5 })
  assert.equal(await formerIn(at.folder), 1, 'what gave no dates leaves nothing')
  await change(uid, { mode: 'ENFORCE', keepLast: 1 })
  await change(uid, { tags: ['v*'] })
  assert.equal(await formerIn(at.folder), 2, 'what came in between had five days')
  clock.now += 30 * day
  const today = await owner()
  ok(await today.delete(`/registry/v2/retentionRules/${uid}`))
  assert.equal(await formerIn(at.folder), 1, 'what is over has gone')
  const last = await rule(at.repo, { keepLast: 1 })
  ok(await today.delete(`/registry/v2/retentionRules/${last}`))
  assert.equal(await formerIn(at.folder), 1, 'the last ones have no date')
  await rule(at.repo, { keepDaysAfter: 7 })
  ok(await today.delete(`/registry/v2/repos/${at.repo}`))
  ok(await today.delete(`/iam/v2/groups/${at.folder}`))
  assert.equal(await formerIn(at.folder), 0, 'it goes with the group')
})

test('limits the former rules of an organization, and refuses a change above the limit', async () => {
  const operator = await registry.as(operatorUid)
  const { uid } = ok(await operator.post('/iam/v2/groups/', { name: 'many' }))
  const says = { name: '', tags: [], exceptTags: [], keepLast: 0, forever: true, untaggedDays: 0, keepDaysAfter: 0 }
  for (let i = 0; i < 500; i++) {
    const text = JSON.stringify({ ...says, tags: [`t${i}`], mode: 'ENFORCE' })
    await app.db.tx((tx) =>
      tx.run(sql`INSERT INTO former_rules (group_uid, rule, scope_uid, says, end_time)
                 VALUES (${uid}, ${`${uid}/${i.toString(16).padStart(16, '0')}`}, ${uid}, ${text}, ${isoIn(0)})`),
    )
  }
  const made = ok(await operator.post(`/registry/v2/retentionRules/${uid}`, { keepDaysAfter: 3, mode: 'ENFORCE' }))
  const metadata = { quota: 'former rules whose dates are to come', used: '500', limit: '500' }
  for (const answer of [
    await operator.patch(`/registry/v2/retentionRules/${made.uid}`, { mode: 'OFF' }),
    await operator.delete(`/registry/v2/retentionRules/${made.uid}`),
  ]) {
    assertError(answer, 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
    const { requestId, ...told } = answer.body.details[0].metadata
    assert.ok(requestId)
    assert.deepEqual(told, metadata)
  }
  const still = ok(await operator.get(`/registry/v2/retentionRules?scopeUid=${uid}`)).retentionRules
  assert.deepEqual(
    still.map(({ mode }: Json) => mode),
    ['ENFORCE'],
  )
  ok(await operator.patch(`/registry/v2/retentionRules/${made.uid}`, { keepDaysAfter: 4 }))
})

const someTags = ['v1', 'v2', 'stable', 'nightly']
/** `tags` are the current and former tags of the digest. */
type Image = { digest: string; tags: string[] }
type Says = { tags: string[]; exceptTags: string[]; keepDaysAfter: number; untaggedDays: number; mode: string }

/** Some digests never had a tag, most had one or two, and four have one now. All of this was before the first rule. */
async function plantImages(at: TestRepo): Promise<Image[]> {
  const images: Image[] = []
  for (let i = 0; i < 40; i++) {
    const digest = await plantManifest(registry, at.repo, `${at.repo} ${i}`)
    images.push({ digest, tags: [] })
    for (const each of i % 5 === 0 ? [] : i % 3 === 0 ? [i, i + 1] : [i]) {
      await moveTag(at, someTags[each % someTags.length]!, images[i]!)
    }
  }
  return images
}

async function moveTag({ repo }: TestRepo, name: string, { digest, tags }: Image): Promise<void> {
  clock.now += 1000
  ok(await (await owner()).post(`/registry/v2/tags/${repo}`, { name, digest }))
  tags.push(name)
}

/**
 * Days for which a rule with these values keeps a digest after it lost such tags, or a digest that never had a tag. Returns 0 if
 * the rule does not keep it.
 */
function daysOf(says: Says, { tags }: Image): number {
  if (says.mode !== 'ENFORCE') return 0
  if (tags.length === 0) return says.untaggedDays
  return tags.some(aboutTags(says)) ? says.keepDaysAfter : 0
}

const nothing: Says = { tags: [], exceptTags: [], keepDaysAfter: 0, untaggedDays: 0, mode: 'OFF' }
const shortenings: Record<string, (random: Random, says: Says) => Partial<Says>> = {
  'fewer days after a tag': (random, { keepDaysAfter }) => ({ keepDaysAfter: random.below(keepDaysAfter) }),
  'fewer days without a tag': (random, { untaggedDays }) => ({ untaggedDays: random.below(untaggedDays) }),
  OFF: () => ({ mode: 'OFF' }),
  DRY_RUN: () => ({ mode: 'DRY_RUN' }),
  'fewer tags': (random, { tags }) => ({ tags: [tags.length > 1 ? oneOf(random, tags) : 'v1'] }),
  'more exceptions': (random, { tags }) => ({ exceptTags: [oneOf(random, tags.length > 0 ? tags : someTags)] }),
  deleted: () => nothing,
}

test('a date stays when rules are shortened, narrowed, turned off or deleted', async (t) => {
  const seed = seedOf(t)
  const random = randomFrom(seed)
  const at = await createRepo()
  const images = await plantImages(at)
  const ways = Object.entries(shortenings)
  const rules: (string | undefined)[] = []
  let told = images.map(() => '')
  const look = async (what: string): Promise<Image[]> => {
    const dates = await Promise.all(images.map(({ digest }) => untilOf(at, digest)))
    for (const [i, date] of dates.entries()) {
      assert.ok(date >= told[i]!, `PINFOLD_SEED=${seed}, ${what}: ${told[i]} of ${images[i]!.tags}, now ${date}`)
    }
    const later = images.filter((_, i) => dates[i]! > told[i]!)
    told = dates
    return later
  }
  let days = 10
  for (let i = 0; i < 20 * times; i++) {
    clock.now += random.below(4) * hour
    // The first rules protect tags that moved on, or untagged digests.
    if (random.below(3) === 0) await moveTag(at, oneOf(random, someTags), oneOf(random, images.slice(10)))
    // Longer than all rules before, so these rules determine the dates.
    days += 1 + random.below(3)
    const tags = oneOf(random, [[], ['v*'], ['nightly', 'stable'], ['v1', 'nightly']])
    const says: Says = { tags, exceptTags: [], keepDaysAfter: days, untaggedDays: days, mode: 'ENFORCE' }
    const uid = rules[i % 2]
    if (uid === undefined) rules[i % 2] = await rule([at.folder, at.repo][i % 2]!, { ...says, keepLast: 1 })
    else await change(uid, says)
    const given = await look('longer')
    const [way, shorten] = ways[i % ways.length]!
    const less = shorten(random, says)
    const isLess = given.some((image) => daysOf({ ...says, ...less }, image) < daysOf(says, image))
    assert.ok(isLess, `PINFOLD_SEED=${seed}, ${i} ${way}: it takes no date back that the rule has given`)
    clock.now += random.below(2) * hour
    if (less !== nothing) await change(rules[i % 2]!, less)
    else {
      await end(rules[i % 2]!)
      rules[i % 2] = undefined
    }
    await look(`${i} ${way} ${JSON.stringify(less)}`)
  }
})

test('no date becomes earlier through any rule changes and tag updates', async (t) => {
  const start = seedOf(t)
  const random = randomFrom(start)
  const at = await createRepo()
  const told = new Map<string, string>()
  const digests: string[] = []
  let rules = [await rule(at.folder, { keepDaysAfter: 7 })]
  digests.push((await (await pushing()).pushImage(at.name, 'v1')).digest)
  let later = 0
  for (let step = 0; step < 40 * times; step++) {
    clock.now += random.below(3) === 0 ? random.below(4) * day : 60_000
    const api = await owner()
    const kind = random.below(8)
    const tag = ['v1', 'v2', 'nightly'][random.below(3)]!
    const says = {
      tags: [[], ['v*'], ['nightly'], ['v1', 'nightly']][random.below(4)]!,
      exceptTags: random.below(4) === 0 ? ['v2'] : [],
      keepDaysAfter: random.below(3) * 7,
      untaggedDays: random.below(3) * 5,
      forever: random.below(40) === 0,
      keepLast: 1,
      mode: ['ENFORCE', 'ENFORCE', 'DRY_RUN', 'OFF'][random.below(4)]!,
    }
    if (kind < 2 || digests.length < 3) {
      const digest = await plantManifest(registry, at.repo, `${at.repo} ${digests.length}`)
      digests.push(digest)
      if (random.below(2) === 0) ok(await api.post(`/registry/v2/tags/${at.repo}`, { name: tag, digest }))
    } else if (kind < 4) {
      const digest = digests[random.below(digests.length)]!
      ok(await api.post(`/registry/v2/tags/${at.repo}`, { name: tag, digest }))
    } else if (kind === 4) {
      await (await pushing()).call('DELETE', `${at.name}/manifests/${tag}`)
    } else if (kind === 5 && rules.length < 3) {
      rules.push(ok(await api.post(`/registry/v2/retentionRules/${[at.folder, at.repo][random.below(2)]}`, says)).uid)
    } else if (rules.length > 0) {
      const uid = rules[random.below(rules.length)]!
      if (kind === 6) ok(await api.patch(`/registry/v2/retentionRules/${uid}`, says))
      else {
        ok(await api.delete(`/registry/v2/retentionRules/${uid}`))
        rules = rules.filter((one) => one !== uid)
      }
    }
    const present = new Date(clock.now).toISOString()
    for (const digest of digests) {
      const { reason, until = noEnd } = ok(await api.get(`/registry/v2/repos/${at.repo}/promises/${digest}`))
      const date: string = reason === 'PROMISED' ? until : ''
      const before = told.get(digest) ?? ''
      if (before > present) assert.ok(date >= before, `PINFOLD_SEED=${start}, step ${step}: ${before}, now ${date}`)
      if (date > before) later++
      told.set(digest, date)
    }
  }
  assert.ok(later > 0, 'otherwise nothing was promised')
})
