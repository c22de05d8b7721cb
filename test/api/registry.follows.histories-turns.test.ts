// Tag histories are read from upstreams only with requests that scheduled checks do not need. An incomplete history resumes at
// its last page, writes nothing and delays no other mirror.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { requestHistories } from '#domains/mirrors/follows/histories.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { digestOf, startRegistry } from '../support/registry.ts'
import { drafting, telling } from '../support/reported-history.ts'
import { localUpstreams, startUpstream, type TestUpstream } from '../support/upstream.ts'

const minute = 60_000
/** Time for the rate limits of hosts passes only when the test advances it, or by half of a wait on request. */
let shift = 0
let ticksFrom: number | undefined
const monotonic = () => shift + (ticksFrom === undefined ? 0 : (performance.now() - ticksFrom) / 2)
const here = await startRegistry({ ...localUpstreams, monotonic })
after(() => here[Symbol.asyncDispose]())
const { operator, org, seed, app } = here

let count = 0
/** A repository that mirrors tags from an upstream. The upstream gets one request per second, or ten after a pause. */
async function followed(there: TestUpstream, tags: number): Promise<string> {
  const names = Array.from({ length: tags }, (_, i) => `1.${i}`)
  for (const name of names) there.move(name, name)
  const name = `turns-${count++}`
  const settings = { name, url: there.url, requestsPerSecond: 1 }
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, settings))
  const repo = (await seed.repo(org.uid, { name })).uid as string
  const follow = { upstreamUid: upstream.uid, path: 'app', tags: names }
  ok(await operator.post(`/registry/v2/repos/${repo}/follow`, follow))
  await runJob(app, followUpstreams)
  return repo
}
const waitingOf = (repo: string): Promise<Json[]> =>
  app.db.all(sql`SELECT tag, due_time, failures, problem FROM follow_histories WHERE repo_uid = ${repo} ORDER BY tag`)
/** Times of the given number of tag updates. A page has a thousand. */
const timesOf = (many: number): string[] =>
  Array.from({ length: many }, (_, i) => new Date(Date.now() - (many - i) * minute).toISOString())
const recordsOf = (many: number): Json[] =>
  timesOf(many).map((updateTimestamp, i) => ({ updateTimestamp, digest: digestOf(`${i}`) }))

test('asks a rate-limited upstream once per run, and still asks other upstreams for tag history', async () => {
  shift += minute
  await using busy = await startUpstream()
  await using idle = await startUpstream()
  const records = recordsOf(1)
  for (const there of [busy, idle]) there.breakWith(telling(() => records))
  const [waits, goesOn] = [await followed(busy, 10), await followed(idle, 2)]
  const before = await waitingOf(waits)
  assert.equal(before.length, 10)
  assert.deepEqual(await runJob(app, requestHistories), { told: 2, failed: 0 })
  assert.deepEqual(await waitingOf(goesOn), [])
  assert.deepEqual(await waitingOf(waits), before, 'and nothing is written')
  assert.equal(busy.count('GET /v2/app/_'), 0)
  for (let i = 0; i < 2; i++) {
    shift += minute
    assert.deepEqual(await runJob(app, requestHistories), { told: 5, failed: 0 })
  }
  assert.deepEqual(await waitingOf(waits), [])
})

test('keeps the pages of a long history that were read before the request limit, and continues after them', async () => {
  shift += minute
  await using there = await startUpstream()
  const records = recordsOf(1200)
  there.breakWith(telling(() => records))
  const repo = await followed(there, 10)
  shift += 6_000
  let { told } = await runJob(app, requestHistories)
  assert.equal(told, 1000)
  for (let run = 0; run < 10 && (await waitingOf(repo)).length > 0; run++) {
    shift += minute
    told! += (await runJob(app, requestHistories)).told!
  }
  assert.equal(told, 12_000)
})

test('reading a history in draft format waits for the rate limit before its next page, and stores it only when complete', async () => {
  shift += minute
  await using there = await startUpstream()
  there.breakWith(
    drafting(
      timesOf(1500)
        .map((time, i) => ({ time, digest: digestOf(`${i}`), event: 'created' }))
        .reverse(),
    ),
  )
  const repo = await followed(there, 10)
  // Includes time for the request to the other address.
  shift += 7_000
  ticksFrom = performance.now()
  const { told } = await runJob(app, requestHistories)
  assert.ok(told! >= 1500)
  assert.ok((await waitingOf(repo)).length < 10)
})
