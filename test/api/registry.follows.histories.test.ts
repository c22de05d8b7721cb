// Tag histories from upstreams: stored as reported by the upstream, and never as updates that this server has seen.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { requestHistories } from '#domains/mirrors/follows/histories.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { captureLog } from '../support/log.ts'
import type { Json } from '../support/pinfold.ts'
import { digestOf, startRegistry } from '../support/registry.ts'
import { drafting, either, telling } from '../support/reported-history.ts'
import { answering, type Fault, localUpstreams, startUpstream } from '../support/upstream.ts'

const minute = 60_000
const day = 24 * 60 * minute
let shift = 0
const here = await startRegistry({ ...localUpstreams, monotonic: () => performance.now() * 1000 + shift })
after(() => here[Symbol.asyncDispose]())
const { operator, org, seed, app, registryOperator } = here
const later = { ...app, clock: () => new Date(Date.now() + shift) }

let count = 0
async function followed(url: string, path: string, more: Json = {}) {
  await app.db.tx((tx) => tx.run(sql`DELETE FROM follows`))
  const name = `mirror-${count++}`
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, { name, url, ...more })) as Json
  const repo = (await seed.repo(org.uid, { name })).uid as string
  ok(await operator.post(`/registry/v2/repos/${repo}/follow`, { upstreamUid: upstream.uid, path }))
  return { repo, name: `acme/${name}`, upstream: upstream.uid as string }
}
async function look(afterMs = 0) {
  shift += afterMs
  await runJob(later, followUpstreams)
  return runJob(later, requestHistories)
}
const toldOf = async (repo: string, query = '', client = operator): Promise<Json[]> =>
  ok(await client.get(`/registry/v2/repos/${repo}/toldTagHistory?${query}`)).records ?? []
const seenOf = async (repo: string, tag: string): Promise<Json[]> =>
  ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=${tag}`)).records ?? []
const followOf = async (repo: string): Promise<Json> => ok(await operator.get(`/registry/v2/repos/${repo}/follow`))
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()

test('imports the exact tag history from another Pinfold server, including updates between two checks', async () => {
  await using there = await startRegistry()
  const made = ok(await there.operator.post(`/control/v1/pushTokens/${there.org.uid}`, { name: 'mirror' }))
  const first = await there.registryOperator.pushImage('acme/app', '1.0')
  const second = await there.registryOperator.pushImage('acme/app', '1.0')
  const account = { username: made.pushToken.userName, password: made.secret }
  const { repo, upstream } = await followed(there.url, 'acme/app', account)
  assert.deepEqual(await look(), { told: 2, failed: 0 })

  const own = async () =>
    (await there.registryOperator.ok(200, 'GET', 'acme/app/_svc/history/1.0')).body.history as Json[]
  const said = await own()
  const told = await toldOf(repo, 'tag=1.0')
  assert.deepEqual(
    told.map(({ time, digest, event, endTime }) => [time, digest, event, endTime]),
    [
      [said[1]!.updateTimestamp, second.digest, 'EVENT_MOVED', undefined],
      [said[0]!.updateTimestamp, first.digest, 'EVENT_CREATED', said[1]!.updateTimestamp],
    ],
  )
  assert.deepEqual([told[0]!.upstreamUid, told[0]!.path, told[0]!.url], [upstream, 'acme/app', there.url])
  assert.equal((await seenOf(repo, '1.0')).length, 1, 'the ledger has what was seen from here, and no more')

  const third = await there.registryOperator.pushImage('acme/app', '1.0')
  const fourth = await there.registryOperator.pushImage('acme/app', '1.0')
  assert.deepEqual(await look(61 * minute), { told: 2, failed: 0 })
  assert.deepEqual(
    (await toldOf(repo, 'tag=1.0')).map(({ digest }) => digest),
    [fourth, third, second, first].map(({ digest }) => digest),
  )
  assert.deepEqual(
    (await seenOf(repo, '1.0')).map(({ digest }) => digest),
    [fourth.digest, second.digest],
  )
  assert.deepEqual(
    (await toldOf(repo, `digest=${third.digest}`)).map(({ tag, time }) => [tag, time]),
    [['1.0', (await own())[2]!.updateTimestamp]],
  )
  const { history, historyWaitingCount, historyProblem } = await followOf(repo)
  assert.deepEqual([history, historyWaitingCount, historyProblem], ['HISTORY_SERVICE', 0, ''])

  // Mirroring the same upstream again reads the history again, and stores nothing twice.
  ok(await operator.delete(`/registry/v2/repos/${repo}/follow`))
  ok(await operator.post(`/registry/v2/repos/${repo}/follow`, { upstreamUid: upstream, path: 'acme/app' }))
  assert.deepEqual(await look(61 * minute), { told: 0, failed: 0 })
  assert.equal((await toldOf(repo)).length, 4)
})

test('views and rules ignore upstream history, and callers without access to upstreams do not see their URLs', async () => {
  await using there = await startUpstream()
  const digest = there.move('1.0', 'now')
  const records = [{ updateTimestamp: ago(30 * day), digest }]
  there.breakWith(telling(() => records))
  const { repo, name } = await followed(there.url, 'app')
  assert.deepEqual(await look(), { told: 1, failed: 0 })
  const at = ago(20 * day)
    .slice(0, 10)
    .replaceAll('-', '')
  assert.equal((await registryOperator.call('GET', `at-${at}/${name}/manifests/1.0`)).status, 404)
  assert.equal((await registryOperator.call('GET', `min-7d/${name}/manifests/1.0`)).status, 403)
  const { body } = await registryOperator.ok(200, 'GET', `${name}/_svc/history/1.0`)
  assert.equal(body.history.length, 1)
  assert.ok(body.history[0].updateTimestamp > ago(day), 'nor does it tell others what it has not seen')
  const viewer = await here.as(here.puller.uid)
  const [told] = await toldOf(repo, '', viewer)
  assert.deepEqual([told!.digest, told!.path, told!.url], [digest, 'app', ''])
})

test('reads deletions from history in the draft format of the distribution specification, over several pages', async () => {
  await using there = await startUpstream()
  const digest = there.move('1.0', 'now')
  const moves = Array.from({ length: 2500 }, (_, i) => ({
    time: ago((2500 - i) * minute),
    digest: i === 2499 ? digest : digestOf(`${i}`),
    event: i % 10 === 5 ? 'deleted' : 'created',
  })).reverse()
  there.breakWith(drafting(moves))
  const { repo } = await followed(there.url, 'app')
  assert.deepEqual(await look(), { told: 2500, failed: 0 })
  assert.equal((await followOf(repo)).history, 'HISTORY_DRAFT')
  const seen: Json[] = []
  let token = ''
  do {
    const page = ok(await operator.get(`/registry/v2/repos/${repo}/toldTagHistory?pageSize=200&pageToken=${token}`))
    seen.push(...page.records)
    token = page.nextPageToken ?? ''
  } while (token !== '')
  assert.deepEqual(
    seen.map(({ time, digest: of }) => [time, of]),
    moves.map(({ time, digest: of }) => [time, of]),
  )
  assert.equal(seen.filter(({ event }) => event === 'EVENT_DELETED').length, 250)
})

const right = () => ({ updateTimestamp: ago(day), digest: digestOf('right') })
const svc = (history: unknown): Fault => json({ history })
function json(body: unknown): Fault {
  return (req, res) => {
    if (!req.url?.includes('/_svc/history/')) return false
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    return true
  }
}
const hostile: Record<string, () => Fault> = {
  'a time that is to come': () => svc([right(), { ...right(), updateTimestamp: ago(-60 * minute) }]),
  'times in no order': () => svc([right(), { ...right(), updateTimestamp: ago(2 * day) }]),
  'a time that is none': () => svc([{ ...right(), updateTimestamp: '2026-13-45T99:00:00Z' }]),
  'a digest that is a path': () => svc([right(), { updateTimestamp: ago(minute), digest: 'sha256:../../etc' }]),
  'no digest': () => svc([{ updateTimestamp: ago(day) }]),
  'a look after the move': () => svc([{ ...right(), checkedBefore: ago(minute) }]),
  'no list': () => svc('everything'),
  'a list of nothing': () => svc([null]),
  'a page': () => (req, res) => {
    if (!req.url?.includes('/_svc/history/')) return false
    res.writeHead(200).end('<html>')
    return true
  },
  'too much in one page': () =>
    svc(Array.from({ length: 12_000 }, (_, i) => ({ ...right(), updateTimestamp: ago(day - i) }))),
  'more than an answer may have': () => svc([{ ...right(), note: 'a'.repeat(5_000_000) }]),
  'that it is forbidden': () => (req, res) => req.url?.includes('/_svc/history/') === true && answering(403)(req, res),
}
for (const [kind, fault] of Object.entries(hostile)) {
  test(`stores nothing of a history with ${kind}, shows the reason in the status, and keeps mirroring the tags`, async () => {
    await using there = await startUpstream()
    there.move('1.0', 'now')
    there.breakWith(fault())
    const { repo } = await followed(there.url, 'app')
    assert.deepEqual(await look(), { told: 0, failed: 1 })
    assert.deepEqual(await toldOf(repo), [])
    assert.match((await followOf(repo)).historyProblem, /^its response|^it denied access/)
    const moved = there.move('1.0', 'then')
    there.forget()
    await look(61 * minute)
    assert.equal((await seenOf(repo, '1.0'))[0]!.digest, moved)
    assert.equal(there.count('GET /v2/app/_'), 0, 'nobody asks again before a day is over')
    there.breakWith(telling(() => [right()]))
    there.move('1.0', 'at last')
    assert.deepEqual(await look(25 * 60 * minute), { told: 1, failed: 0 })
    assert.equal((await followOf(repo)).historyProblem, '')
  })
}

test('asks a registry without tag history twice a day, for any number of tags', async () => {
  await using there = await startUpstream()
  for (let i = 0; i < 20; i++) there.move(`1.${i}`, `${i}`)
  const { repo } = await followed(there.url, 'app')
  assert.deepEqual(await look(), { told: 0, failed: 0 })
  assert.equal((await followOf(repo)).history, 'HISTORY_NONE')
  there.move('1.0', 'again')
  await look(61 * minute)
  assert.equal(there.count('GET /v2/app/_'), 2)
  there.move('1.0', 'once more')
  await look(25 * 60 * minute)
  assert.equal(there.count('GET /v2/app/_'), 4)
})

test('stops reading an endless history at the record limit of a tag', async () => {
  await using there = await startUpstream()
  there.move('1.0', 'now')
  const begin = Date.now() - day
  const records = Array.from({ length: 25_000 }, (_, i) => ({
    updateTimestamp: new Date(begin + i * 1000).toISOString(),
    digest: digestOf('same'),
  }))
  there.breakWith(telling(() => records))
  const { repo } = await followed(there.url, 'app')
  assert.equal((await look()).told, 10_000)
  assert.match((await followOf(repo)).historyProblem, /only 10000 updates of a tag/)
  assert.ok(there.count('GET /v2/app/_svc') <= 22, `${there.count('GET /v2/app/_svc')}`)
})

test('retries an unavailable upstream without delaying scheduled checks', async () => {
  await using there = await startUpstream()
  there.move('1.0', 'now')
  there.breakWith((req, res) => req.url?.includes('/_svc/history/') === true && answering(503)(req, res))
  const { repo } = await followed(there.url, 'app')
  assert.deepEqual(await look(), { told: 0, failed: 1 })
  assert.match((await followOf(repo)).historyProblem, /503/)
  assert.equal((await seenOf(repo, '1.0')).length, 1)
  there.breakWith(telling(() => [right()]))
  assert.deepEqual(await look(2 * minute), { told: 1, failed: 0 })
})

test('asks an upstream that never answers about tag history a few times, then for one tag a day', async () => {
  await using there = await startUpstream()
  for (let i = 0; i < 8; i++) there.move(`1.${i}`, `${i}`)
  there.breakWith((req, res) => req.url?.includes('/_svc/history/') === true && answering(503)(req, res))
  const { repo } = await followed(there.url, 'app')
  for (let i = 0; i < 8; i++) await look(61 * minute)
  assert.equal(there.count('GET /v2/app/_'), 5)
  const { history, historyProblem, historyWaitingCount } = await followOf(repo)
  assert.deepEqual([history, historyWaitingCount], [undefined, 8])
  assert.match(historyProblem, /503/)
  await look(day)
  await look(61 * minute)
  assert.equal(there.count('GET /v2/app/_'), 6)
  there.breakWith(telling(() => [right()]))
  assert.equal((await look(day)).told, 8)
})

test('tries the other history format if an upstream refuses one format, or has no history of a tag in it', async () => {
  await using there = await startUpstream()
  const refuses: Fault = (req, res) => req.url?.includes('/_svc/history/') === true && answering(400)(req, res)
  there.move('1.0', 'now')
  const moves = [{ time: ago(day), digest: digestOf('right'), event: 'created' }]
  there.breakWith(either(refuses, drafting(moves)))
  const { repo } = await followed(there.url, 'app')
  assert.deepEqual(await look(), { told: 1, failed: 0 })
  assert.equal((await followOf(repo)).history, 'HISTORY_DRAFT')
  const onlyOne: Fault = (req, res) =>
    req.url?.endsWith('/_svc/history/2.0') === true && telling(() => [right()])(req, res)
  there.breakWith((req, res) => (req.url?.includes('2.0') ? onlyOne(req, res) : drafting(moves)(req, res)))
  there.move('2.0', 'now')
  assert.deepEqual(await look(61 * minute), { told: 1, failed: 0 })
  assert.deepEqual((await toldOf(repo, 'tag=2.0')).length, 1)
})

for (const status of [404, 403]) {
  test(`ignores the late response ${status} of a former upstream`, async () => {
    await using there = await startUpstream()
    there.move('1.0', 'now')
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<void>()
    there.breakWith((req, res) => {
      if (!req.url?.includes('/app/_')) return telling(() => [right()])(req, res)
      asked.resolve()
      void answer.promise.then(() => res.writeHead(status).end())
      return true
    })
    const { repo, upstream } = await followed(there.url, 'app')
    await runJob(later, followUpstreams)
    const run = runJob(later, requestHistories)
    await asked.promise
    ok(await operator.post(`/registry/v2/repos/${repo}/follow`, { upstreamUid: upstream, path: 'other' }))
    answer.resolve()
    assert.deepEqual(await run, { told: 0, failed: 0 })
    there.move('1.0', 'then')
    assert.deepEqual(await look(minute), { told: 1, failed: 0 })
    assert.equal((await followOf(repo)).history, 'HISTORY_SERVICE')
    assert.deepEqual(
      (await toldOf(repo)).map(({ path }) => path),
      ['other'],
    )
  })
}

test('an upstream with an unreadable password does not block others', async () => {
  await using there = await startUpstream()
  there.move('1.0', 'now')
  there.breakWith(telling(() => [right()]))
  const first = await followed(there.url, 'app')
  await runJob(later, followUpstreams)
  const name = `mirror-${count++}`
  const other = (await seed.repo(org.uid, { name })).uid as string
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, { name, url: there.url }))
  ok(await operator.post(`/registry/v2/repos/${other}/follow`, { upstreamUid: upstream.uid, path: 'app' }))
  shift += minute
  await runJob(later, followUpstreams)
  await app.db.tx((tx) =>
    tx.run(sql`UPDATE upstreams SET password = ${Buffer.from('none')} WHERE uid = ${first.upstream}`),
  )
  const log = captureLog()
  assert.deepEqual(await runJob({ ...later, log: log.log }, requestHistories), { told: 1, failed: 1 })
  assert.equal((await toldOf(other)).length, 1)
  assert.ok(log.lines.length > 0)
})
