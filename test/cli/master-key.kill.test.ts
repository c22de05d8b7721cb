// A rotation of the master key that is killed during its work, and its errors for wrong keys.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseMasterKey } from '#lib/crypto/master-key.ts'
import { createSecretCipher, type SecretCipher } from '#lib/crypto/secret-cipher.ts'
import { clientOf, onPostgres } from '../support/pinfold.ts'
import { pooler } from '../support/pooler.ts'
import {
  cleanEnv,
  createStorage,
  type Env,
  program,
  project,
  run,
  startInProcess,
  type TestStorage,
  tokenOf,
} from '../support/process.ts'

const purpose = 'sign-in-attempt'
const newKey = () => randomBytes(32).toString('hex')
/** Number of secrets that keeps the command busy for a while. */
const many = onPostgres ? 3000 : 20_000

/** Direct access to the rows, without the program. */
async function ask(
  storage: TestStorage,
  text: string,
  values: (string | Buffer)[] = [],
): Promise<Record<string, unknown>[]> {
  if (onPostgres) {
    const named = text
      .replace('TABLE', `${storage.schema}.sign_in_attempts`)
      .replace('FACTS', `${storage.schema}.facts`)
    let count = 0
    return (
      await storage.query(
        named.replaceAll('?', () => `$${++count}`),
        values,
      )
    ).rows
  }
  const db = new DatabaseSync(join(storage.data, 'pinfold.db'), { timeout: 5000 })
  try {
    return db.prepare(text.replace('TABLE', 'sign_in_attempts').replace('FACTS', 'facts')).all(...values)
  } finally {
    db.close()
  }
}

const keyFile = ({ data }: TestStorage, name = 'master.key') => join(data, name)
/** The existing keys, in the environment or in files. */
function keysOf(storage: TestStorage, env: Env): SecretCipher[] {
  const files = ['master.key', 'master.key.new']
    .map((name) => keyFile(storage, name))
    .filter((file) => existsSync(file))
  const given = Object.entries(env).flatMap(([name, text]) => (name.startsWith('PINFOLD_MASTER_KEY') ? [text!] : []))
  const texts = onPostgres ? given : files.map((file) => readFileSync(file, 'utf8'))
  return texts.map((text) => createSecretCipher(parseMasterKey(text)))
}
async function secretsOf(storage: TestStorage): Promise<Buffer[]> {
  return (await ask(storage, 'SELECT sealed FROM TABLE')).map(({ sealed }) => Buffer.from(sealed as Uint8Array))
}
const opened = (cipher: SecretCipher, secrets: Buffer[]) => secrets.filter((one) => cipher.decrypt(purpose, one)).length

/** Starts a server, adds many secrets, and returns the URL and an operator token. */
async function filled(storage: TestStorage) {
  await using server = await startInProcess(storage)
  const token = await tokenOf(storage)
  server.kill('SIGTERM')
  await server.exited
  const [cipher] = keysOf(storage, storage.env)
  const secret = cipher!.encrypt(purpose, Buffer.from('a secret'))
  const digits = onPostgres
    ? `SELECT n::text, '', '', '', ?, '', '9999' FROM generate_series(1, ${many}) AS n`
    : `WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ${many})
       SELECT CAST(n AS TEXT), '', '', '', ?, '', '9999' FROM s`
  await ask(
    storage,
    `INSERT INTO TABLE (state_hash, browser_hash, provider, callback, sealed, asked, expire_time) ${digits}`,
    [secret],
  )
  return { url: server.url, token }
}

/** A former token is still valid, so the signing keys are the same. */
async function serves(storage: TestStorage, env: Env, { url, token }: { url: string; token: string }): Promise<void> {
  await using server = await startInProcess({ ...storage, env }, { args: ['--url', url], listen: new URL(url).host })
  assert.equal((await clientOf(url, token).get('/iam/v2/groups')).status, 200)
  server.kill('SIGTERM')
  await server.exited
}

const visible = { skip: pooler !== '' && 'a pooler hides the work of the rotation' }

/** Times to kill the process, each later than the one before. */
const moments: Record<string, (storage: TestStorage) => Promise<boolean>> = {
  'as soon as there is a new key': (storage) => atWork(storage),
  'while it encrypts': async (storage) => (await atWork(storage)) && sleep(150, true),
  'as soon as it has committed': async (storage) => {
    const [fact] = await ask(storage, "SELECT value FROM FACTS WHERE name = 'master_key'")
    const first = fingerprints.get(storage)
    if (first === undefined) fingerprints.set(storage, String(fact!.value))
    return first !== undefined && fact!.value !== first
  },
}
const fingerprints = new WeakMap<TestStorage, string>()
async function atWork(storage: TestStorage): Promise<boolean> {
  if (!onPostgres) return existsSync(keyFile(storage, 'master.key.new'))
  const { rows } = await storage.query(
    "SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND query LIKE '%UPDATE%sign_in_attempts%'",
    [storage.name],
  )
  return rows.length > 0
}

for (const [moment, isNow] of Object.entries(moments)) {
  test(
    `a rotation killed ${moment} leaves one key that decrypts everything, and can be run again`,
    visible,
    async () => {
      await using storage = await createStorage()
      const before = await filled(storage)
      await isNow(storage)
      const env: Env = onPostgres ? { ...storage.env, PINFOLD_MASTER_KEY_NEW: newKey() } : {}
      const child = spawn(program, ['server', 'keys', 'rotate-master', ...storage.args], {
        cwd: project,
        env: cleanEnv(env),
      })
      const over = once(child, 'close')
      let ended = false
      void over.then(() => {
        ended = true
      })
      while (!ended && !(await isNow(storage))) await sleep(1)
      child.kill('SIGKILL')
      await over
      await storage.settled()
      // Only the last time is after the commit.
      const secrets = await secretsOf(storage)
      const [present] = keysOf(storage, storage.env)
      const opening = keysOf(storage, env).map((cipher) => opened(cipher, secrets))
      assert.equal(Math.max(...opening), secrets.length)
      assert.equal(secrets.length, many)
      if (!moment.includes('committed')) {
        assert.equal(child.signalCode, 'SIGKILL')
        assert.equal(opened(present!, secrets), many, 'nothing was encrypted under the new key')
      }
      await serves(storage, env, before)

      const left = (await secretsOf(storage)).length
      const { code, stdout, stderr } = await run(['server', 'keys', 'rotate-master', ...storage.args], { env })
      assert.equal(code, 0, stderr)
      if (!(onPostgres && moment.includes('committed'))) {
        assert.match(stdout, new RegExp(`^encrypted ${left + 1} secrets with the new master key`))
      }
      const [latest] = onPostgres
        ? [createSecretCipher(parseMasterKey(env.PINFOLD_MASTER_KEY_NEW!))]
        : keysOf(storage, env)
      const now = await secretsOf(storage)
      assert.deepEqual([opened(latest!, now), now.length], [left, left])
      await serves(
        storage,
        onPostgres ? { ...storage.env, PINFOLD_MASTER_KEY: env.PINFOLD_MASTER_KEY_NEW! } : {},
        before,
      )
    },
  )
}

test('a rotation names a wrong, missing or malformed key, and changes nothing', async () => {
  await using storage = await createStorage()
  const own = { ...storage, env: { ...storage.env, PINFOLD_MASTER_KEY: newKey() } }
  {
    await using server = await startInProcess(own)
    server.kill('SIGTERM')
    await server.exited
  }
  const [next, other] = [newKey(), newKey()]
  const cases: [env: Env, code: number, said: RegExp][] = [
    [{ PINFOLD_MASTER_KEY: other, PINFOLD_MASTER_KEY_NEW: next }, 1, /another master key than PINFOLD_MASTER_KEY/],
    [own.env, 64, /set PINFOLD_MASTER_KEY_NEW to the new key/],
    [{ ...own.env, PINFOLD_MASTER_KEY_NEW: 'short' }, 78, /PINFOLD_MASTER_KEY_NEW must be 32 bytes, as base64 or hex/],
    [{ PINFOLD_MASTER_KEY: 'short', PINFOLD_MASTER_KEY_NEW: next }, 78, /PINFOLD_MASTER_KEY must be 32 bytes/],
    [
      { ...own.env, PINFOLD_MASTER_KEY_NEW: own.env.PINFOLD_MASTER_KEY },
      64,
      /PINFOLD_MASTER_KEY_NEW and PINFOLD_MASTER_KEY are the same/,
    ],
  ]
  for (const [env, code, said] of cases) {
    const told = await run(['server', 'keys', 'rotate-master', ...storage.args], { env: { ...storage.env, ...env } })
    assert.match(told.stderr, said)
    assert.deepEqual([told.code, told.stdout], [code, ''], told.stderr)
    assert.doesNotMatch(told.stderr, new RegExp(`${next}|${other}|at .*\\.ts`))
  }
  await using _server = await startInProcess(own)
})
