import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Terminal } from '../../src/cli/framework/command.ts'
import { withOperator } from '../../src/cli/framework/operator.ts'
import { progressOf } from '../../src/cli/framework/progress.ts'
import { takeServeLock } from '../../src/db/sqlite/serve-lock.ts'
import { clientOf, onPostgres } from '../support/pinfold.ts'
import { createStorage, run, startInProcess, type TestStorage, tokenOf } from '../support/process.ts'

const optionsOf = (storage: TestStorage) => ({
  data: storage.data,
  ...(storage.database ? { database: storage.database } : {}),
})

function terminalOf(env: Record<string, string>): Terminal {
  return { env, input: async () => '', print: () => {}, say: () => {}, untilSignaled: async () => {} }
}

test('an operator command opens the folder if no server runs, and blocks servers meanwhile', async () => {
  await using storage = await createStorage()
  const names = await withOperator(terminalOf(storage.env), optionsOf(storage), async (api) => {
    await api.post('/iam/v2/groups/', { name: 'acme' })
    if (!onPostgres) await assert.rejects(startInProcess(storage), /another server uses the data folder/)
    const { groups } = await api.get('/iam/v2/groups?uidp.in_root=true')
    return (groups as { name: string }[]).map(({ name }) => name)
  })
  assert.deepEqual(names, ['acme'])

  await using server = await startInProcess(storage)
  const { body } = await clientOf(server.url, await tokenOf(storage)).get('/iam/v2/groups?uidp.in_root=true')
  assert.equal(body.groups[0].name, 'acme')
})

test('without a server in the folder, creates nothing and suggests another folder', async () => {
  await using storage = await createStorage({ isEmpty: true })
  const typo = join(storage.data, 'typo')
  const where = storage.database ? storage.args : ['--data', typo]
  for (const words of ['server quotas list', 'server transparency-log erase acme/app', 'vulnerabilities verify']) {
    const { code, stdout, stderr } = await run([...words.split(' '), ...where], { env: storage.env })
    assert.deepEqual([code, stdout], [69, ''], words)
    assert.match(stderr, /^pinfold: no server has used .* yet: .*\npinfold: start the server .*--data\n$/, words)
  }
  assert.equal((await run(['server', 'console', ...where], { env: storage.env })).code, 69)
  assert.deepEqual(readdirSync(storage.data), [])
})

test('an operator command calls the running server, whatever its public name is', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage, { args: ['--url', 'https://registry.example.invalid'] })
  await withOperator(terminalOf(storage.env), optionsOf(storage), (api) =>
    api.post('/iam/v2/groups/', { name: 'acme' }),
  )
  server.kill('SIGTERM')
  assert.equal((await server.exited).code, 0)
})

test('shows an error of the server to the user of the command', async () => {
  await using storage = await createStorage()
  await withOperator(terminalOf(storage.env), optionsOf(storage), async (api) => {
    await assert.rejects(api.post('/iam/v2/groups/', { name: '?' }), /name/)
    await assert.rejects(api.get('/nowhere'), { code: 5 })
  })
})

test('server transparency-log erase prints its effect, and erases with --yes', async () => {
  await using storage = await createStorage()
  await withOperator(terminalOf(storage.env), optionsOf(storage), async (api) => {
    const org = (await api.post('/iam/v2/groups/', { name: 'acme' })) as { uid: string }
    const repo = (await api.post(`/registry/v2/repos/${org.uid}`, { name: 'app' })) as { uid: string }
    const [time, digest] = ['2026-01-01T00:00:00Z', `sha256:${'a'.repeat(64)}`]
    const tags = [{ name: 'latest', records: [{ time, digest }] }]
    await api.post('/control/v1/tagHistory:import', { repoUid: repo.uid, tags })
  })
  const erase = (...args: string[]) =>
    run(['server', 'transparency-log', 'erase', 'acme/app', ...args, ...storage.args], { env: storage.env })
  await using server = await startInProcess(storage)
  const missing = await erase('--yes')
  assert.equal(missing.code, 1)
  assert.match(
    missing.stderr,
    /^pinfold: no deleted repository acme\/app was found; .*pinfold repos delete acme\/app\n$/,
  )
  const client = clientOf(server.url, await tokenOf(storage))
  const { repos } = (await client.get('/registry/v2/repos')).body
  await client.delete(`/registry/v2/repos/${repos[0].uid}`)
  const warned = await erase()
  assert.equal(warned.code, 64)
  assert.match(warned.stderr, /would erase the tag history of acme\/app, deleted on .*; give --yes/)
  assert.equal((await erase('--yes')).stdout, 'erased 2 history records of acme/app\n')
  assert.equal((await erase('--yes')).code, 1)
})

test('lists, describes and sets quotas by the name of the organization', async () => {
  await using storage = await createStorage()
  await withOperator(terminalOf(storage.env), optionsOf(storage), async (api) => {
    const { uid } = (await api.post('/iam/v2/groups/', { name: 'acme' })) as { uid: string }
    await api.post(`/registry/v2/repos/${uid}`, { name: 'app' })
  })
  await using _ = await startInProcess(storage)
  const quotas = (...args: string[]) => run(['server', 'quotas', ...args, ...storage.args], { env: storage.env })
  const set = await quotas('set', 'acme', '--bytes', '20GiB', '--repositories', '5', '--uploads', 'none')
  assert.equal(set.code, 0, set.stderr)
  const described = await quotas('describe', 'acme')
  assert.equal(described.stdout, set.stdout)
  assert.deepEqual(
    described.stdout
      .split('\n')
      .map((line) => line.split(/ {2,}/))
      .slice(0, 5),
    [
      ['QUOTA', 'USED', 'LIMIT', 'SET'],
      ['bytes', '0', String(20 * 1024 ** 3), 'for the organization'],
      ['repositories', '1', '5', 'for the organization'],
      ['groups', '0', 'none', 'by the settings'],
      ['uploads', '0', 'none', 'for the organization'],
    ],
  )
  assert.equal((await quotas('set', 'acme', '--uploads', 'default', '--bytes', 'default')).code, 0)
  const [acme] = JSON.parse((await quotas('list', '-o', 'json')).stdout)
  assert.deepEqual(acme.quotas[0], { name: 'bytes', used: '0', own: false })
  assert.equal(acme.name, 'acme')
  assert.equal(acme.quotas[3].limit, '1000')
  assert.match((await quotas('list')).stdout, /^acme +repositories +1 +5 /m)
  assert.equal((await quotas('set', 'acme')).code, 64)
  for (const wrong of ['0', '5GB']) assert.equal((await quotas('set', 'acme', '--bytes', wrong)).code, 64)
  assert.match((await quotas('describe', 'nobody')).stderr, /no organization nobody was found/)
})

test('reports a folder as in use if the process that uses it does not answer', { skip: onPostgres }, async () => {
  await using storage = await createStorage()
  const lock = takeServeLock(join(storage.data, 'serve.lock'))!
  const command = withOperator(terminalOf({}), optionsOf(storage), (api) => api.get('/iam/v2/groups'))
  await assert.rejects(command, { exitCode: 69, message: /is in use, but no server answers/ })
  lock.release()
})

test('with PostgreSQL, calls the named server', { skip: !onPostgres }, async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  const away = terminalOf({ ...storage.env, PINFOLD_API: 'http://127.0.0.1:1' })
  await assert.rejects(
    withOperator(away, optionsOf(storage), (api) => api.get('/iam/v2/groups')),
    { exitCode: 69 },
  )
  const named = terminalOf({ ...storage.env, PINFOLD_API: server.url })
  await withOperator(named, optionsOf(storage), (api) => api.get('/iam/v2/groups'))
})

test('shows progress only on a terminal, at intervals, and clears it', () => {
  const shown: string[] = []
  let now = 0
  {
    using bar = progressOf({ ...terminalOf({}), status: (line) => void shown.push(line) }, 'things', 2000, () => now)
    for (let done = 1; done <= 2000; done++) {
      now += 1
      bar.at(done)
    }
  }
  assert.equal(shown[0], '[........................] 1 of 2,000 things')
  assert.equal(shown.at(-2), '[########################] 2,000 of 2,000 things')
  assert.equal(shown.at(-1), '')
  assert.ok(shown.length < 30)
  using silent = progressOf(terminalOf({}), 'things', 1)
  silent.at(1)
})
