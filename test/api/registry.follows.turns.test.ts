// Frequency of mirror checks, the order of waiting mirrors, and the tag history that the checks write.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { createFollowJob, followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { startRegistry } from '../support/registry.ts'
import { localUpstreams, startUpstream } from '../support/upstream.ts'

const minute = 60_000
/** The clock of the jobs and of the requests. */
let [shift, callShift] = [0, 0]
const registry = await startRegistry({
  ...localUpstreams,
  clock: () => new Date(Date.now() + callShift),
  monotonic: () => performance.now() * 1000 + shift,
})
const { seed, operator, org, app } = registry
after(() => registry[Symbol.asyncDispose]())

let count = 0
async function scene() {
  const there = await startUpstream()
  after(() => there[Symbol.asyncDispose]())
  // Deletes the mirrors of earlier tests.
  await app.db.tx((tx) => tx.run(sql`DELETE FROM follows`))
  const name = `turns-${count++}`
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, { name, url: there.url }))
  const follow = async (path: string, body: Json = {}): Promise<string> => {
    const repo = (await seed.repo(org.uid, { name: `${name}-${path}` })).uid as string
    ok(await operator.post(`/registry/v2/repos/${repo}/follow`, { upstreamUid: upstream.uid, path, ...body }))
    return repo
  }
  return { there, follow }
}
const later = { ...app, clock: () => new Date(Date.now() + shift) }
const look = async (afterMs = 0, job = followUpstreams) => {
  shift += afterMs
  return runJob(later, job)
}
const historyOf = async (repo: string, tag: string): Promise<Json[]> =>
  ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=${tag}`)).records ?? []
const check = async (repo: string) => ok(await operator.post(`/registry/v2/repos/${repo}/follow:check`))

test('a check can be requested once a minute; more requests have no effect', async () => {
  const { there, follow } = await scene()
  there.move('3', 'one')
  const repo = await follow('app', { tags: ['3'] })
  await look()
  await check(repo)
  assert.equal((await look(1000)).looks, 1)
  assert.equal((await check(repo)).state, 'STATE_WAITING')
  assert.equal((await look(1000)).looks, 0)
  callShift = shift += 61_000
  assert.equal((await check(repo)).state, 'STATE_QUEUED')
  assert.equal((await look()).looks, 1)
})

test('records a tag that returned as deleted and created again, at the times of the checks', async () => {
  const { there, follow } = await scene()
  there.move('3', 'one')
  there.move('other', 'one')
  const repo = await follow('app', { interval: '3600s' })
  await look()
  there.tags.delete('3')
  await look(61 * minute)
  for (let i = 0; i < 2; i++) await look(21 * minute)
  const [gone] = await historyOf(repo, '3')
  assert.equal(gone!.event, 'EVENT_DELETED')
  // The list of tags was read earlier.
  there.move('3', 'one')
  await look(21 * minute)
  const [again] = await historyOf(repo, '3')
  assert.deepEqual([again!.event, again!.checkedBefore], ['EVENT_CREATED', undefined])
})

test('reading a long list of tags pauses for other work after each page', async () => {
  const { there, follow } = await scene()
  const pages = 6
  for (let page = 0; page < pages; page++) there.move(`t${page}`, `t${page}`)
  there.breakWith((req, res) => {
    const url = new URL(req.url ?? '/', 'http://upstream.invalid')
    if (url.pathname !== '/v2/long/tags/list') return false
    const page = Number(url.searchParams.get('last') ?? 0)
    if (page + 1 < pages) res.setHeader('link', `</v2/long/tags/list?last=${page + 1}>; rel="next"`)
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify({ name: 'long', tags: [`t${page}`] }))
    return true
  })
  const long = await follow('long')
  const short = await follow('short', { tags: ['t0'] })
  const started = later.clock().toISOString()
  const looked = await look(0, createFollowJob(0))
  assert.deepEqual([looked.moves, looked.failed], [pages + 1, 0])
  assert.equal((await historyOf(short, 't0')).length, 1)
  assert.ok(there.asked.indexOf('HEAD /v2/short/manifests/t0') < there.asked.lastIndexOf('GET /v2/long/tags/list'))
  assert.equal(there.count('GET /v2/long/tags/list'), pages, 'each page once')
  there.move('t9', 't9')
  there.mend()
  await look(61 * minute)
  const [born] = await historyOf(long, 't9')
  assert.ok(born!.checkedBefore >= started && born!.checkedBefore < born!.time)
})
