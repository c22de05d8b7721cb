// Agreement of the servers of one database: on the time, on shared limits, and on the server that reports shared metrics.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mock, test } from 'node:test'
import { adjusted, createSkew } from '#db/skew.ts'
import { sql } from '#db/sql.ts'
import { collectBlobs } from '#domains/registry/blobs/collect-blobs.job.ts'
import { addTrash } from '#domains/registry/blobs/locations.store.ts'
import { operatorUid, signAccessToken } from '#issuer/access-token.ts'
import { jobs, startWorkers } from '#workers.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { clientAt, secondNode } from '../support/nodes.ts'
import { clientOf, onPostgres, startPinfold } from '../support/pinfold.ts'
import { createStorage, startProcess } from '../support/process.ts'
import { startRegistry } from '../support/registry.ts'

const skip = onPostgres ? false : 'an embedded database has one server'
const day = 86_400_000
const name = 'acme/app'
const sweepNodes = jobs.find((one) => one.name === 'nodes.sweep')!

const page = async (node: { port: number }, path: string, token?: string) => {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const res = await fetch(`http://127.0.0.1:${node.port}${path}`, { headers })
  return { status: res.status, text: await res.text() }
}

test('a server whose clock is a day ahead writes the database time, deletes nothing early, and is not ready', {
  skip,
}, async () => {
  await using registry = await startRegistry({ jobs: [] })
  await using wrong = await secondNode(registry, day)
  const { org, pusher, operator } = registry
  const there = clientAt(wrong, pusher)
  await there.pushImage(name, 'latest')
  const loose = await pusher.pushBlob(name, randomBytes(50))
  const [repo] = ok(await operator.get(`/registry/v2/repos?uidp.descendantsOf=${org.uid}`)).repos
  const [tag] = ok(await operator.get(`/registry/v2/tags?uidp.descendantsOf=${repo.uid}`)).tags
  assert.ok(Math.abs(Date.parse(tag.updateTime) - Date.now()) < day / 2, tag.updateTime)

  await runJob(wrong.app, collectBlobs)
  await registry.app.db.tx((tx) =>
    tx.run(sql`
    INSERT INTO collections (id, dry_run, state, request_time) VALUES ('early', 0, 0, '2026-01-01T00:00:00.000Z')`),
  )
  assert.equal((await runJob(wrong.app, collectBlobs)).links, 0)
  assert.equal((await pusher.call('HEAD', `${name}/blobs/${loose.digest}`)).status, 200)

  const shown = await page(wrong, '/readyz')
  assert.deepEqual(
    [shown.status, shown.text],
    [503, 'the clock of this server is 86400 s ahead of that of the database\n'],
  )
  assert.equal((await page(registry, '/readyz')).status, 200)
})

test('a server whose clock is changed keeps the database time, also before it reads that time again', {
  skip,
}, async () => {
  await using registry = await startRegistry({ jobs: [] })
  let ahead = 0
  await using node = await secondNode(registry, () => ahead)
  const there = clientAt(node, registry.pusher)
  for (const set of [day, -day]) {
    ahead = set
    await there.pushImage(name, `set-${set}`)
    const off = node.app.clock().getTime() - Date.now()
    assert.ok(Math.abs(off) < day / 2, `${off}`)
    await node.app.skew.measure()
    assert.equal(Math.round(node.app.skew.offsetMs() / 1000), -set / 1000)
  }
  const { tags } = ok(await registry.operator.get(`/registry/v2/tags?uidp.descendantsOf=${registry.org.uid}`))
  assert.equal(tags.length, 2)
  for (const { updateTime } of tags) assert.ok(Math.abs(Date.parse(updateTime) - Date.now()) < day / 2, updateTime)
})

test('uses the database time, whatever the clock of the machine shows', async () => {
  const [at, passed] = [Date.parse('2026-03-01T08:00:00Z'), 50]
  const clock = { machine: at, passed, database: at }
  const pass = (ms: number) => {
    for (const which of ['machine', 'passed', 'database'] as const) clock[which] += ms
  }
  let setMeanwhile = 0
  const get = async () => {
    clock.machine += setMeanwhile
    pass(2)
    return { now: clock.database } as never
  }
  const skew = createSkew({ engine: 'postgres', get }, { time: () => clock.machine, passed: () => clock.passed })
  const off = () => skew.now().getTime() - clock.database
  await skew.measure()
  assert.deepEqual([off(), skew.offsetMs()], [0, 0])
  pass(1000)
  clock.machine += day
  assert.equal(off(), 0)
  await skew.measure()
  assert.equal(off(), 0)
  assert.ok(Math.abs(skew.offsetMs() + day) < 5, `${skew.offsetMs()}`)
  setMeanwhile = -2 * day
  await skew.measure()
  assert.equal(off(), 0)
  assert.ok(Math.abs(skew.offsetMs() - day) < 5, `${skew.offsetMs()}`)
  setMeanwhile = 0
  // The monotonic clock does not count system sleep. So a sleep, like a change of the database time, shows only after the
  // database is asked.
  clock.database += 60_000
  assert.equal(off(), -60_000)
  await skew.measure()
  assert.ok(Math.abs(off()) < 5, `${off()}`)
})

test('a delay while the clocks are read does not count as a clock offset', async () => {
  const start = Date.parse('2026-03-01T08:00:00Z')
  for (const paused of ['time', 'passed'] as const) {
    let ms = 0
    let isHeldUp = false
    const look = (which: typeof paused) => {
      if (isHeldUp && which === paused) ms += 40
      return ms
    }
    const get = async () => ({ now: start + ++ms }) as never
    const clocks = { time: () => start + look('time'), passed: () => look('passed') }
    const skew = createSkew({ engine: 'postgres', get }, clocks)
    await skew.measure()
    isHeldUp = true
    await skew.measure()
    isHeldUp = false
    assert.deepEqual([skew.offsetMs(), skew.now().getTime()], [0, start + ms], paused)
  }
})

test('a server started with a given clock uses it, whatever the database time is', async () => {
  const at = new Date('2026-03-01T08:00:00.000Z')
  await using pinfold = await startPinfold({ clock: () => at })
  for (const offset of [-1, 1]) {
    pinfold.app.skew.offsetMs = () => offset
    assert.equal(pinfold.app.clock().getTime(), at.getTime())
  }
})

test('keeps the known clock offset while the answer time of the database allows it', () => {
  assert.equal(adjusted(0, -5, 5), 0)
  assert.equal(adjusted(0, 100, 120), 110)
  assert.equal(adjusted(110, 90, 150), 110)
  assert.equal(adjusted(110, 200, 210), 205)
  assert.equal(adjusted(110, -20, 20), 0)
  assert.equal(adjusted(0, -90_000, -89_990), -89_995)
  assert.equal(adjusted(undefined, 100, 120, 115), 115)
})

test('if most servers have the same time, the database clock is reported as wrong, and no other server', async () => {
  let ahead = 10_000
  const db = { engine: 'postgres' as const, get: async () => ({ now: ahead }) as never }
  const skew = createSkew(db, { time: () => 0, passed: () => 0 })
  await skew.measure()
  const blamed = (...others: number[]) => {
    skew.compare(others)
    return skew.isDatabaseOff()
  }
  assert.deepEqual([blamed(), blamed(0), blamed(0, 10_000), blamed(-10_000)], [false, false, false, false])
  assert.deepEqual([blamed(10_500), blamed(9000, 10_000, 0)], [true, true])
  ahead = 0
  await skew.measure()
  assert.equal(blamed(0), false)
})

test('servers stay ready if most of them have the same offset from the database time', {
  skip,
}, async () => {
  await using stack = new AsyncDisposableStack()
  const pinfold = stack.use(await startPinfold({ jobs: [] }))
  const shown: number[] = []
  for (let i = 0; i < 3; i++) {
    const node = stack.use(await secondNode(pinfold, 10_000))
    const server = { url: node.url, localUrl: `http://127.0.0.1:${node.port}` }
    stack.adopt(await startWorkers(node.app, { jobs: [], server }), (workers) => workers.close())
    shown.push((await page(node, '/readyz')).status)
  }
  // One is wrong; two are as many as the first server and the database; three are more.
  assert.deepEqual(shown, [503, 503, 200])
  assert.equal((await page(pinfold, '/readyz')).status, 200)
})

test('servers divide shared limits among them, and only one server reports shared metrics', { skip }, async () => {
  await using pinfold = await startPinfold({ jobs: [sweepNodes], metrics: true, exchangesPerIdentity: 60 })
  await using other = await secondNode(pinfold)
  assert.deepEqual(pinfold.app.fleet, { nodes: 1, isFirst: true })
  const server = { url: other.url, localUrl: `http://127.0.0.1:${other.port}` }
  const workers = await startWorkers(other.app, { jobs: [sweepNodes], server })
  assert.deepEqual(other.app.fleet, { nodes: 2, isFirst: false })
  let taken = 0
  assert.throws(() => {
    for (; taken < 100; taken++) other.app.limits.check('identity', 'somebody')
  }, /too many requests/)
  assert.equal(taken, 30)

  const unused = { location: 'sha256/aa/a', size: 1 }
  await pinfold.app.db.tx((tx) => addTrash(tx, unused, new Date().toISOString()))
  const token = pinfold.operator.token!
  const shows = async (node: { port: number }) => {
    const { text } = await page(node, '/metrics', token)
    assert.match(text, /^pinfold_db_commits_total /m)
    assert.match(text, /^pinfold_db_retries_total\{command="update",reason="conflict"\} \d/m)
    const isShown = /^pinfold_deliveries_waiting\{/m.test(text)
    assert.equal(/^pinfold_blob_trash (\S+)$/m.exec(text)?.[1], isShown ? '1' : undefined)
    return isShown
  }
  assert.deepEqual([await shows(pinfold), await shows(other)], [true, false])
  await workers.close()
})

test('log lines of servers that share a database name the server', { skip }, async () => {
  await using storage = await createStorage()
  const nodes: string[] = []
  for (let i = 0; i < 2; i++) {
    await using server = await startProcess(storage, { env: { PINFOLD_LOG_LEVEL: 'info' } })
    await fetch(`${server.url}/iam/v2/groups`)
    server.kill('SIGTERM')
    await server.exited
    const lines = server.output.stderr.split('\n').filter((line) => line.includes('"message":"request"'))
    assert.ok(lines.length > 0, server.output.stderr)
    for (const line of lines) nodes.push((JSON.parse(line) as { node: string }).node)
  }
  for (const node of nodes) assert.match(node, /^[0-9a-f]{16}$/)
  assert.equal(new Set(nodes).size, 2)
})

test('the metrics show how many blobs wait for deletion, and since when deletion fails', async () => {
  let shift = 0
  const clock = () => new Date(Date.now() + shift)
  await using pinfold = await startPinfold({ jobs: [], metrics: true, clock })
  const both = async () => {
    const { text } = await page(pinfold, '/metrics', pinfold.operator.token!)
    const shown = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
    return [shown('pinfold_blob_trash'), shown('pinfold_blob_trash_overdue_seconds')] as const
  }
  assert.deepEqual(await both(), [0, 0])
  const add = (location: string, due: number) =>
    pinfold.app.db.tx((tx) => addTrash(tx, { location, size: 1 }, new Date(due).toISOString()))
  await add('sha256/aa/a', Date.now() + day)
  assert.deepEqual(await both(), [1, 0])
  await add('sha256/aa/b', Date.now() - day)
  const [count, overdue] = await both()
  assert.equal(count, 2)
  assert.ok(overdue >= 86_400 && overdue < 86_500, `${overdue}`)
  // Times come from the database, with a single query.
  shift = 30 * 60_000
  const asked = mock.method(pinfold.app.db, 'get')
  assert.equal(Math.floor((await both())[1] / 100), 882)
  const questions = asked.mock.calls.filter(({ arguments: [{ parts }] }) => parts.join('').includes('blob_trash'))
  asked.mock.restore()
  assert.equal(questions.length, 1)
})

test('another server accepts a token with a new signing key at once', { skip }, async () => {
  await using pinfold = await startPinfold()
  await using other = await secondNode(pinfold)
  const { app, url } = pinfold
  const before = other.app.keyring.epoch()
  // Simulates replaced keys.
  await app.db.tx((tx) => tx.run(sql`DELETE FROM signing_keys`))
  await app.keyring.rotate((work, options) => app.db.tx(work, options))
  const named = { issuer: url, subject: operatorUid, audience: url, now: app.clock() }
  const token = await signAccessToken(app.keyring, named)
  const client = clientOf(`http://127.0.0.1:${other.port}`, token)
  assert.equal((await client.get('/iam/v2/groups')).status, 200)
  assert.notEqual(other.app.keyring.epoch(), before)
})

test('serves the other metrics while the database is unavailable or does not answer', async () => {
  await using pinfold = await startPinfold({ jobs: [], metrics: true, metricsToken: 'collector' })
  const inCommon = /^pinfold_(?:blob_trash|deliveries_waiting|events_unrouted)/m
  const whole = await page(pinfold, '/metrics', 'collector')
  assert.match(whole.text, inCommon)
  const troubles = [() => Promise.reject(new Error('away')), () => new Promise<never>(() => {})]
  for (const trouble of troubles) {
    const mocked = [mock.method(pinfold.app.db, 'get', trouble), mock.method(pinfold.app.db, 'all', trouble)]
    const { status, text } = await page(pinfold, '/metrics', 'collector')
    for (const one of mocked) one.mock.restore()
    assert.equal(status, 200)
    assert.match(text, /^nodejs_eventloop_lag_p99_seconds /m)
    assert.match(text, /^pinfold_db_commits_total /m)
    assert.doesNotMatch(text, inCommon)
  }
  assert.match((await page(pinfold, '/metrics', 'collector')).text, inCommon)
})
