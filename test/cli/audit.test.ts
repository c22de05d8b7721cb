import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operatorUid } from '#lib/uid.ts'
import { startPinfold } from '../support/pinfold.ts'
import { createStorage, run, startInProcess } from '../support/process.ts'

test('audit list shows changes with their author, and filters by scope, author or time', async () => {
  await using pinfold = await startPinfold()
  const acme = (await pinfold.seed.group('', { name: 'acme' })).uid
  await pinfold.seed.group('', { name: 'globex' })
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! }
  const audit = (...args: string[]) => run(['audit', 'list', ...args], { env })
  assert.equal((await run(['folders', 'create', 'team', '--in', 'acme'], { env })).code, 0)

  const shown = await audit('--in', 'acme')
  assert.deepEqual([shown.code, shown.stderr], [0, ''])
  const [head = '', first = ''] = shown.stdout.split('\n')
  assert.match(head, /^TIME +CHANGE +ADDRESS$/)
  assert.match(first, /^2\S+Z +The operator created acme\/team +127\.0\.0\.1$/)

  const items = async (...args: string[]) => {
    const { code, stdout, stderr } = await audit(...args, '-o', 'json')
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout).items as { subject: string; group: string; createTime: string }[]
  }
  const [newest] = await items('--in', 'acme')
  assert.ok(newest!.subject.startsWith(`${acme}/`))
  assert.deepEqual(await items('--in', 'globex', '--resource', newest!.subject), [])
  assert.deepEqual(
    (await items('--resource', newest!.subject)).map(({ subject }) => subject),
    [newest!.subject],
  )
  assert.deepEqual(await items('--in', 'acme', '--until', newest!.createTime, '--resource', newest!.subject), [])
  assert.equal((await items('--in', 'acme', '--since', newest!.createTime))[0]!.subject, newest!.subject)
  assert.deepEqual(await items('--type', 'dev.pinfold.api.iam.group.deleted.v1'), [])
  assert.equal((await items('--limit', '1')).length, 1)

  const csv = await run(['audit', 'export', '--in', 'acme', '--since', '2020-01-01'], { env })
  assert.deepEqual([csv.code, csv.stderr], [0, ''])
  assert.match(
    csv.stdout,
    /^time,actor,action,sentence,.*\r\n2\S+Z,The operator,[^,]+,The operator created acme\/team,/,
  )
  const lines = (await run(['audit', 'export', '--in', 'acme', '--format', 'jsonl'], { env })).stdout.trimEnd()
  assert.deepEqual(
    lines.split('\n').map((line) => JSON.parse(line).sentence),
    ['The operator created acme/team', 'The operator created acme'],
  )
})

test('audit list refuses an invalid time and an unknown author', async () => {
  await using pinfold = await startPinfold()
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! }
  const time = await run(['audit', 'list', '--since', 'soon'], { env })
  assert.equal(time.code, 64)
  assert.match(time.stderr, /--since must be/)
  const author = await run(['audit', 'list', '--by', 'nobody'], { env })
  assert.equal(author.code, 1)
  assert.match(author.stderr, /nobody/)
})

test('status shows the server and the signed-in user, and exits with 69 if the server is unreachable', async () => {
  await using pinfold = await startPinfold()
  const ready = await run(['status'], { env: { PINFOLD_API: pinfold.url } })
  assert.deepEqual([ready.code, ready.stderr], [0, ''])
  assert.match(
    ready.stdout,
    new RegExp(`^server +${pinfold.url}\nready +yes\nsigned in as +nobody; to sign in: pinfold login\n$`),
  )
  const token = pinfold.operator.token!
  const json = await run(['status', '-o', 'json'], { env: { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: token } })
  const identity = operatorUid
  assert.deepEqual(JSON.parse(json.stdout), { api: pinfold.url, ready: true, message: 'ok', identity })
  const wrong = await run(['status'], { env: { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: 'x.y.z' } })
  assert.match(wrong.stdout, /^signed in as +unknown: PINFOLD_TOKEN is not a valid token$/m)
  const away = await run(['status'], { env: { PINFOLD_API: 'http://127.0.0.1:9' } })
  assert.deepEqual([away.code, away.stdout], [69, ''])
  assert.match(away.stderr, /^pinfold: http:\/\/127\.0\.0\.1:9 cannot be reached: /)
})

test('status finds the server of a data folder, as the operator', async (t) => {
  await using storage = await createStorage()
  if (storage.database) return t.skip('a server with PostgreSQL has no data folder to find it by')
  await using server = await startInProcess(storage)
  const { code, stdout, stderr } = await run(['status', '--data', storage.data, '-o', 'json'], { env: storage.env })
  assert.equal(code, 0, stderr)
  assert.deepEqual(JSON.parse(stdout), { api: server.url, ready: true, message: 'ok', identity: 'operator' })
})
