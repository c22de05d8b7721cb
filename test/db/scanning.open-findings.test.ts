// Finding counts of a package list follow the changes of its packages, in batches that can be interrupted. After each batch, the
// count plus the queued changes equals a recount.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Package } from '#contents/packages.ts'
import { sql } from '#db/sql.ts'
import { sweepComponents, sweepLists } from '#domains/scanning/cleanup/cleanup.service.ts'
import * as upkeep from '#domains/scanning/cleanup/cleanup.store.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { claimMatch, processMatch } from '#domains/scanning/findings/match-queue.service.ts'
import { spreadPage } from '#domains/scanning/findings/open-findings.service.ts'
import { verifyStep } from '#domains/scanning/findings/verify.service.ts'
import { completeList, type PreparedList, passOn, prepareList } from '#domains/scanning/lists/lists.service.ts'
import { changedPackage, type DueMatch, matchKinds } from '#domains/scanning/queue/queue.model.ts'
import * as queue from '#domains/scanning/queue/queue.store.ts'
import { beginSource, putRecords } from '#domains/scanning/records/records.service.ts'
import { runJob } from '../support/background-jobs.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { randomFrom } from '../support/random.ts'
import { recordAbout } from '../support/scanning.ts'

const bound = 40
let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold({ vulnerabilityFindingsPerImage: bound })
})
after(() => pinfold[Symbol.asyncDispose]())

const ecosystem = 'Alpine:v3.19'
const organization = 'a'.repeat(40)
const { signal } = new AbortController()
const now = () => pinfold.app.clock().toISOString()
const item = { organization: '', dueTime: '2026-03-01T00:00:00.000Z' }
const apk = (name: string, origin = name): Package => {
  return { kind: 'apk', name, version: '1-r0', origin, originVersion: '1-r0', arch: 'x86_64' }
}

let made = 0
const prepare = (...packages: Package[]): Promise<PreparedList> => {
  const key = { hash: `list ${made++}`, distribution: { id: 'alpine', version: '3.19.1' } }
  return prepareList(pinfold.app, key, packages)
}
const complete = (list: PreparedList) => pinfold.app.db.tx((tx) => completeList(tx, list, organization, now()))

async function put(ids: readonly string[], name: string, more: { withdrawTime?: string } = {}): Promise<void> {
  const work = { app: pinfold.app, log: pinfold.app.log }
  const run = await beginSource(work, { name: 'some', url: '', licence: 'MIT', ecosystems: [ecosystem] })
  await putRecords(
    work,
    run,
    ids.map((id) => recordAbout(id, ecosystem, name, '9-r0', more)),
  )
}

/** Runs the queued work, of one kind or of all kinds. */
async function work(kind?: 'package' | 'list'): Promise<void> {
  for (let next = await take(kind); next; next = await take(kind)) await processMatch(pinfold.app, next, signal)
}

async function take(kind?: 'package' | 'list'): Promise<DueMatch | undefined> {
  if (!kind) return claimMatch(pinfold.app, { node: 'one', isGone: () => false, after: undefined })
  const seen = await pinfold.app.db.get<Omit<DueMatch, 'kind'>>(sql`
    SELECT place AS organization, item, due_time AS "dueTime", attempts, owner, fence, progress FROM match_queue
     WHERE kind = ${matchKinds[kind]} ORDER BY due_time LIMIT 1`)
  return seen && pinfold.app.db.tx((tx) => queue.claimMatch(tx, { ...seen, kind, fence: Number(seen.fence) }, 'one'))
}

const spread = (componentNo: number, most = 1): Promise<boolean> =>
  pinfold.app.db.tx((tx) => spreadPage(tx, { app: pinfold.app, item }, componentNo, most))

async function waiting(): Promise<number[]> {
  const rows = await pinfold.app.db.all<{ no: number }>(sql`
    SELECT DISTINCT component_id AS no FROM open_changes ORDER BY component_id`)
  return rows.map(({ no }) => Number(no))
}

/** Counted and actual findings of the lists. */
async function opens(...lists: PreparedList[]): Promise<string[]> {
  const counted: string[] = []
  for (const { listNo } of lists) {
    const row = await pinfold.app.db.get<{ open: number; found: number }>(sql`
      SELECT l.open_findings AS open, (
             SELECT count(*) FROM list_components c JOIN findings f ON f.component_id = c.component_id
              WHERE c.list_id = l.id AND f.gone_time = '' AND f.place = '') AS found
        FROM component_lists l WHERE l.id = ${listNo}`)
    counted.push(`${row!.open} of ${row!.found}`)
  }
  return counted
}

/** Deletes package lists without images, like the cleanup job. */
async function forget(...lists: PreparedList[]): Promise<void> {
  const { db } = pinfold.app
  for (const { listNo } of lists) {
    await db.tx((tx) => upkeep.markListDeleted(tx, listNo))
    while (await db.tx((tx) => upkeep.emptyList(tx, listNo, 2))) assert.deepEqual(await differences(), [])
    await db.tx(async (tx) => {
      await passOn(tx, listNo, '')
      await upkeep.deleteList(tx, listNo)
    })
  }
}

const sweep = (tx: Pinfold['app']['db']['tx'] = pinfold.app.db.tx): Promise<number> =>
  sweepComponents({ app: pinfold.app, tx, check() {} })

async function differences(): Promise<string[]> {
  const found: string[] = []
  for (let step = 'c:0'; step !== ''; ) {
    const { differences: some, next } = await verifyStep(pinfold.app, step)
    // The counts ignore packages that wait for comparison.
    found.push(...some.filter((one) => one.includes('counted')))
    step = next
  }
  return found
}

test('a package list gets each change once, wherever the change is when the list is counted', async () => {
  const [first, behind, third, ahead] = [
    await prepare(apk('one')),
    await prepare(apk('one')),
    await prepare(apk('one')),
    await prepare(apk('one'), apk('alone')),
  ]
  for (const list of [first, third]) await complete(list)
  await work()
  await put(['O-1', 'O-2'], 'one')
  await work('package')
  const [one] = await waiting()
  assert.ok(one)
  assert.deepEqual(await opens(first, third), ['0 of 2', '0 of 2'])
  assert.deepEqual([await spread(one), await spread(one)], [true, true])
  assert.deepEqual(await opens(first, behind, third), ['2 of 2', '-1 of 2', '0 of 2'], 'one of them is not counted yet')
  for (const list of [behind, ahead]) await complete(list)
  await work('list')
  assert.deepEqual(await opens(behind, third, ahead), ['2 of 2', '0 of 2', '0 of 2'])
  assert.deepEqual(await differences(), [])
  // A second change while the first one is queued.
  await put(['O-1'], 'one', { withdrawTime: '2026-03-01T00:00:00.000Z' })
  await put(['O-3', 'O-4'], 'one')
  await work('package')
  assert.deepEqual(await differences(), [])
  assert.equal(await spread(one), true)
  assert.deepEqual(await opens(first, third, ahead), ['2 of 3', '2 of 3', '0 of 3'])
  while (await spread(one)) assert.deepEqual(await differences(), [])
  assert.deepEqual(await opens(first, behind, third, ahead), Array(4).fill('3 of 3'))
  await work()
})

test('two servers that update the same package lists do not count a change twice', async () => {
  const lists = [await prepare(apk('two')), await prepare(apk('two')), await prepare(apk('two'))]
  for (const list of lists) await complete(list)
  await work()
  await put(['T-1'], 'two')
  await work('package')
  const [two] = await waiting()
  await Promise.all(Array.from({ length: 6 }, () => spread(two!)))
  assert.deepEqual(await opens(...lists), Array(3).fill('1 of 1'))
  await work()
  assert.deepEqual(await waiting(), [])
})

test('an interrupted batch has no effect, and stays queued', async () => {
  const lists = [await prepare(apk('three')), await prepare(apk('three'))]
  for (const list of lists) await complete(list)
  await work()
  await put(['H-1'], 'three')
  await work('package')
  const [three] = await waiting()
  const step = pinfold.app.db.tx(async (tx) => {
    await spreadPage(tx, { app: pinfold.app, item }, three!, 1)
    throw new Error('ended')
  })
  await assert.rejects(step, /ended/)
  assert.deepEqual(await opens(...lists), ['0 of 1', '0 of 1'])
  const queued = await pinfold.app.db.get(sql`SELECT 1 AS one FROM match_queue WHERE item = ${changedPackage(three!)}`)
  assert.ok(queued)
  await runJob(pinfold.app, matchPackages)
  assert.deepEqual(await opens(...lists), ['1 of 1', '1 of 1'])
})

test('changes can bring a package list above the limit, and back once below half of it', async () => {
  const ids = Array.from({ length: bound }, (_, i) => `L-${i}`)
  const list = await prepare(apk('four'), apk('four-libs', 'four'))
  await complete(list)
  await work()
  const isOver = async () => {
    const row = await pinfold.app.db.get<{ over: number }>(sql`
      SELECT over_limit AS over FROM component_lists WHERE id = ${list.listNo}`)
    return Number(row!.over) === 1
  }
  await put(ids.slice(0, bound / 2), 'four')
  await work()
  assert.deepEqual([await opens(list), await isOver()], [[`${bound} of ${bound}`], false])
  await put(ids, 'four')
  await work()
  assert.equal(await isOver(), true)
  assert.deepEqual(await differences(), [])
  await put(ids.slice(4), 'four', { withdrawTime: '2026-03-01T00:00:00.000Z' })
  await work()
  assert.deepEqual([await opens(list), await isOver()], [['8 of 8'], false])
})

test('counts a package from zero if an image adds it again during its deletion', async () => {
  const list = await prepare(apk('five'))
  await complete(list)
  await work()
  await put(['F-1', 'F-2'], 'five')
  await work()
  await forget(list)
  let back: PreparedList | undefined
  await sweep(async (step, options) => {
    const done = await pinfold.app.db.tx(step, options)
    back ??= await prepare(apk('five'))
    return done
  })
  assert.deepEqual(await differences(), [])
  await put(['F-1'], 'five', { withdrawTime: '2026-03-01T00:00:00.000Z' })
  await complete(back!)
  await work()
  assert.deepEqual(await opens(back!), ['1 of 1'])
})

test('counts a package list from an earlier release after the next cleanup job', async () => {
  const list = await prepare(apk('six'))
  await complete(list)
  await work()
  await put(['S-1'], 'six')
  await work()
  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE component_lists SET open_findings = -1 WHERE id = ${list.listNo}`))
  assert.match((await differences()).join('\n'), /findings are not counted/)
  await sweepLists({ app: pinfold.app, tx: pinfold.app.db.tx, check() {} })
  assert.deepEqual(await differences(), [], 'it waits')
  await work()
  assert.deepEqual(await opens(list), ['1 of 1'])
})

test('counts equal the actual findings after any changes in any order', async () => {
  const random = randomFrom(15)
  const pick = (of: number) => random.below(of)
  const [lists, names] = [[] as PreparedList[], 5]
  const some = () => {
    const chosen = new Set(Array.from({ length: 1 + pick(6) }, () => `p${pick(names)}`))
    return [...chosen].flatMap((name) => [apk(name), ...(pick(2) === 0 ? [apk(`${name}-${pick(3)}`, name)] : [])])
  }
  const step = async () => {
    const next = await take()
    if (next) await processMatch(pinfold.app, next, signal)
  }
  for (let i = 0; i < 150; i++) {
    const what = pick(10)
    const [one] = await waiting()
    if (what < 2) {
      const list = await prepare(...some())
      lists.push(list)
      await complete(list)
    } else if (what < 4) {
      const ids = Array.from({ length: 1 + pick(6) }, () => `R-${pick(30)}`)
      await put([...new Set(ids)], `p${pick(names)}`, pick(3) === 0 ? { withdrawTime: '2026-03-01T00:00:00.000Z' } : {})
    } else if (what === 4 && lists.length > 8) await forget(...lists.splice(pick(lists.length), 1))
    else if (what === 5) await sweep()
    else if (what < 8 && one !== undefined) await spread(one, 1 + pick(2))
    else await step()
    assert.deepEqual(await differences(), [], `step ${i}`)
  }
  await work()
  assert.deepEqual(await waiting(), [])
  const counted = await opens(...lists)
  assert.ok(counted.every((one) => one.split(' of ')[0] === one.split(' of ')[1]) && counted.length > 5, `${counted}`)
})
