// The master key: its loss and its rotation, with the real program.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { clientOf, onPostgres } from '../support/pinfold.ts'
import {
  createStorage,
  type Env,
  freeAddress,
  run,
  runProcess,
  startInProcess,
  startProcess,
  type TestStorage,
  tokenOf,
  type Where,
} from '../support/process.ts'

const newKey = () => randomBytes(32).toString('hex')
const keyFile = ({ data }: TestStorage) => join(data, 'master.key')
const onFiles = { skip: onPostgres && 'the key is in the environment' }
const onePostgres = { skip: !onPostgres && 'one server' }
/** URLs of the servers that have registered in the database. */
const urlsOf = async (storage: TestStorage): Promise<string[]> => {
  const { rows } = await storage.query(`SELECT url FROM ${storage.schema}.nodes ORDER BY url`)
  return rows.map(({ url }) => url)
}
const refusal = async (storage: TestStorage, env: Env, ...args: string[]) => {
  const { code, stdout, stderr } = await run([...args, ...storage.args], { env })
  assert.deepEqual([code === 0, stdout], [false, ''], stderr)
  return stderr
}
/** Starts a server once, which creates a database with keys, and returns the URL and an operator token. */
async function served(storage: TestStorage): Promise<{ url: string; token: string }> {
  await using server = await startInProcess(storage)
  const token = await tokenOf(storage)
  server.kill('SIGTERM')
  await server.exited
  return { url: server.url, token }
}
/** A former token is still valid, so the signing keys are the same. */
async function opens(storage: TestStorage, env: Env, { url, token }: { url: string; token: string }): Promise<void> {
  await using server = await startInProcess({ ...storage, env }, { args: ['--url', url], listen: new URL(url).host })
  assert.equal((await clientOf(url, token).get('/iam/v2/groups')).status, 200)
  server.kill('SIGTERM')
  await server.exited
}

test('does not replace a lost master key by a new one', onFiles, async () => {
  await using storage = await createStorage()
  const before = await served(storage)
  const lost = `${keyFile(storage)}.copy`
  renameSync(keyFile(storage), lost)
  const files = readdirSync(storage.data).sort()
  for (const command of ['serve', 'token', 'migrate']) {
    const said = await refusal(storage, {}, command)
    assert.match(said, /master\.key is missing, and the secrets in the database are encrypted with it; restore/)
    assert.match(said, /No new key was created/)
  }
  assert.equal(existsSync(keyFile(storage)), false)
  assert.deepEqual(readdirSync(storage.data).sort(), files)
  renameSync(lost, keyFile(storage))
  await opens(storage, {}, before)
})

test('refuses a different master key', async () => {
  await using storage = await createStorage()
  const before = await served(storage)
  const said = await refusal(storage, { PINFOLD_MASTER_KEY: newKey() }, 'serve')
  assert.match(said, /encrypted with another master key than PINFOLD_MASTER_KEY; set it to the key/)
  await opens(storage, storage.env, before)
})

test('replaces the key in the data folder, and keeps the old key for old backups', onFiles, async () => {
  await using storage = await createStorage()
  const before = await served(storage)
  const old = readFileSync(keyFile(storage), 'utf8')
  {
    await using _server = await startInProcess(storage)
    assert.match(await refusal(storage, {}, 'server', 'keys', 'rotate-master'), /is in use; stop every server first/)
  }
  assert.equal(readFileSync(keyFile(storage), 'utf8'), old)
  const { code, stdout, stderr } = await run(['server', 'keys', 'rotate-master', ...storage.args], {})
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^encrypted 1 secrets with the new master key\n/)
  assert.notEqual(readFileSync(keyFile(storage), 'utf8'), old)
  const kept = /old key, which is in (\S+);/.exec(stdout)![1]!
  assert.equal(readFileSync(kept, 'utf8'), old)
  assert.equal(existsSync(`${keyFile(storage)}.new`), false)
  await opens(storage, {}, before)
  assert.match(await refusal(storage, { PINFOLD_MASTER_KEY: old.trim() }, 'serve'), /another master key/)
})

test('the next process completes or discards a killed rotation', onFiles, async () => {
  await using storage = await createStorage()
  const before = await served(storage)
  const old = readFileSync(keyFile(storage), 'utf8')
  // Killed before the commit: the new key exists, and nothing is encrypted with it.
  writeFileSync(`${keyFile(storage)}.new`, `${randomBytes(32).toString('base64')}\n`)
  await opens(storage, {}, before)
  assert.equal(readFileSync(keyFile(storage), 'utf8'), old)

  // Killed after the commit: the new key is correct, but not yet in its final place.
  assert.equal((await run(['server', 'keys', 'rotate-master', ...storage.args], {})).code, 0)
  const fresh = readFileSync(keyFile(storage), 'utf8')
  writeFileSync(`${keyFile(storage)}.new`, fresh)
  writeFileSync(keyFile(storage), old)
  await opens(storage, {}, before)
  assert.equal(readFileSync(keyFile(storage), 'utf8'), fresh)
  assert.equal(existsSync(`${keyFile(storage)}.new`), false)
})

test('replaces a key from the environment by the next key, and uses the matching one of two', async () => {
  await using storage = await createStorage()
  const [first, next] = [newKey(), newKey()]
  const own = { ...storage, env: { ...storage.env, PINFOLD_MASTER_KEY: first } }
  const before = await served(own)
  assert.match(
    await refusal(own, own.env, 'server', 'keys', 'rotate-master'),
    /set PINFOLD_MASTER_KEY_NEW to the new key/,
  )
  const both = { ...own.env, PINFOLD_MASTER_KEY_NEW: next }
  await opens(own, both, before)
  const rotated = await run(['server', 'keys', 'rotate-master', ...storage.args], { env: both })
  assert.deepEqual([rotated.code, rotated.stderr], [0, ''])
  assert.match(rotated.stdout, /^encrypted 1 secrets/)
  await opens(own, both, before)
  await opens(own, { ...own.env, PINFOLD_MASTER_KEY: next }, before)
  assert.match(await refusal(own, own.env, 'serve'), /another master key/)
  assert.match((await run(['server', 'keys', 'rotate-master', ...storage.args], { env: both })).stdout, /already/)
})

test('recognizes a database of an earlier version by the values that its key decrypts', onFiles, async () => {
  await using storage = await createStorage()
  const before = await served(storage)
  const { DatabaseSync } = await import('node:sqlite')
  const db = new DatabaseSync(join(storage.data, 'pinfold.db'))
  db.exec("DELETE FROM facts WHERE name = 'master_key'")
  db.close()
  const old = readFileSync(keyFile(storage), 'utf8')
  writeFileSync(keyFile(storage), `${randomBytes(32).toString('base64')}\n`)
  assert.match(await refusal(storage, {}, 'serve'), /another master key than the one in/)
  writeFileSync(keyFile(storage), old)
  await opens(storage, {}, before)
})

test('refuses to replace a PostgreSQL key while a server runs', onePostgres, async () => {
  await using storage = await createStorage()
  const env = { ...storage.env, PINFOLD_LEASE_MS: '1600' }
  const both = { ...env, PINFOLD_MASTER_KEY_NEW: newKey() }
  await using server = await startProcess({ ...storage, env })
  assert.match(
    await refusal(storage, both, 'server', 'keys', 'rotate-master'),
    /a server uses the database, with the URL http/,
  )
  // The row of the server stays, but without heartbeats.
  server.kill('SIGKILL')
  await server.exited
  const { code, stderr } = await run(['server', 'keys', 'rotate-master', ...storage.args], { env: both })
  assert.equal(code, 0, stderr)
})

/** Sends requests until it is aborted, and resolves with the first response. */
async function firstAnswer(address: string, signal: AbortSignal): Promise<number | undefined> {
  while (!signal.aborted) {
    const answer = await fetch(`http://${address}/healthz`).catch(() => undefined)
    if (answer) return answer.status
    await sleep(1)
  }
  return undefined
}
/** A server that refuses to start. Rejects with the reason, after the server has served no request. `meanwhile` stops with it. */
async function refuses(
  storage: Where,
  args: string[],
  meanwhile: (signal: AbortSignal) => Promise<unknown> = async () => {},
): Promise<void> {
  const listen = await freeAddress()
  const over = new AbortController()
  const answered = firstAnswer(listen, over.signal)
  const started = startProcess(storage, { args, listen })
  const done = meanwhile(over.signal)
  try {
    await using _wrong = await started
  } finally {
    over.abort()
    await done
    assert.equal(await answered, undefined, 'somebody was answered')
  }
}

test(
  'servers that share a database have one URL, and a server with another URL serves no request',
  onePostgres,
  async () => {
    await using storage = await createStorage()
    const own = { ...storage, env: { ...storage.env, PINFOLD_LEASE_MS: '1600' } }
    await using first = await startProcess(own, { args: ['--url', 'https://one.example.com'] })
    const other = ['--url', 'https://two.example.com']
    await assert.rejects(refuses(own, other), /uses this database with the URL https:\/\/one\.example\.com/)
    assert.deepEqual(
      await urlsOf(storage),
      ['https://one.example.com'],
      'what is refused leaves no sign of life behind',
    )
    {
      await using _same = await startProcess(own, { args: ['--url', 'https://one.example.com'] })
    }
    first.kill('SIGKILL')
    await first.exited
    await using _second = await startProcess(own, { args: other })
  },
)

test('a server registers before it checks the master key, and serves requests afterwards', onePostgres, async () => {
  await using storage = await createStorage()
  const own = { ...storage, env: { ...storage.env, PINFOLD_LEASE_MS: '1600' } }
  await served(own)
  // Row of a killed server, so the next server waits for a heartbeat of it.
  await storage.query(`INSERT INTO ${storage.schema}.nodes (id, version, url, local_url, start_time, beat_time, beat, clock_offset_ms)
    VALUES ('gone', '1', 'https://gone.example.com', '', '', '9999', 1, 0)`)
  const replaced = async (signal: AbortSignal) => {
    while (!signal.aborted && (await urlsOf(storage)).length < 2) await sleep(10)
    await storage.query(`UPDATE ${storage.schema}.facts SET value = 'another' WHERE name = 'master_key'`)
  }
  await assert.rejects(refuses(own, [], replaced), /the master key was replaced while the server started/)
  assert.deepEqual(await urlsOf(storage), ['https://gone.example.com'])
})

test('a server that starts during a rotation is not mistaken for an earlier server', onePostgres, async () => {
  await using storage = await createStorage()
  const own = { ...storage, env: { ...storage.env, PINFOLD_LEASE_MS: '400' } }
  const before = await served(own)
  const nodes = `${storage.schema}.nodes`
  const alone = async () => {
    const client = await storage.connect()
    await client.query('BEGIN')
    return client
  }
  const lock = `LOCK TABLE ${nodes} IN ACCESS EXCLUSIVE MODE`
  const waiting = async (count: number) => {
    // Copies of a database have tables of the same numbers.
    const counted = `
      SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted AND relation = '${nodes}'::regclass
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
    while ((await storage.query(counted)).rows[0].n < count) await sleep(5)
  }
  // The command checks the servers more than once. The first check sees none, and later ones see a new server.
  const [first, second] = [await alone(), await alone()]
  await first.query(lock)
  const both = { ...own.env, PINFOLD_MASTER_KEY_NEW: newKey() }
  const rotation = runProcess(['server', 'keys', 'rotate-master', ...storage.args], { env: both })
  await waiting(1)
  const locked = second.query(lock)
  await waiting(2)
  await first.query('COMMIT')
  await locked
  await second.query(`INSERT INTO ${nodes} (id, version, url, local_url, start_time, beat_time, beat, clock_offset_ms)
    VALUES ('new', '1', 'https://new.example.com', '', '', '9999', 1, 0)`)
  await second.query('COMMIT')
  const { code, stderr } = await rotation
  assert.match(stderr, /a server that uses the database has started, with the URL https:\/\/new\.example\.com/)
  assert.notEqual(code, 0)
  await Promise.all([first.end(), second.end()])
  await storage.query(`DELETE FROM ${nodes}`)
  await opens(own, own.env, before)
})
