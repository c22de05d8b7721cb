// Restores a PostgreSQL server with an archived log to a random second, while clients push continuously. Every push that was
// acknowledged before that second must be there, and a verification must find nothing missing. The blob store is not restored. To
// run it by hand, on a machine with the programs of PostgreSQL:
//   bin/pinfold-node test/fuzz/restore.ts --seconds 60 --rounds 3
// With --bucket the blobs are in a bucket of versitygw. The test for an embedded database is test/fuzz/backups.ts.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { startBucket } from '../support/bucket.ts'
import { clientOf } from '../support/pinfold.ts'
import { freePort } from '../support/ports.ts'
import { freeAddress, runProcess, startProcess, tokenOf } from '../support/process.ts'
import { randomFrom } from '../support/random.ts'
import { registryClient } from '../support/registry.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    rounds: { type: 'string', default: '3' },
    bucket: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [seconds, rounds, seed] = [values.seconds, values.rounds, values.seed].map(Number) as [number, number, number]
const programs = dirname(globSync('/usr/lib/postgresql/*/bin/initdb').sort().at(-1) ?? '')
if (programs === '.') throw new Error('there is no PostgreSQL on this machine')
const folder = mkdtempSync(join(tmpdir(), 'pinfold-restore-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
chmodSync(folder, 0o755)
const archive = join(folder, 'archive')
mkdirSync(archive)
// PostgreSQL refuses to run as root.
const isRoot = process.getuid?.() === 0
const asOther = (program: string, args: readonly string[]): [string, string[]] =>
  isRoot ? ['runuser', ['-u', 'postgres', '--', program, ...args]] : [program, [...args]]
const pgRun = (program: string, ...args: string[]) => {
  const [command, all] = asOther(join(programs, program), args)
  execFileSync(command, all, { stdio: ['ignore', 'ignore', 'inherit'], cwd: '/' })
}
if (isRoot) execFileSync('chown', ['postgres', archive, folder])
const port = await freePort()

async function startPostgres(data: string, more: readonly string[] = []) {
  const settings = [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
    'wal_level=replica',
    'archive_mode=on',
    `archive_command=cp %p ${archive}/%f`,
    ...more,
  ].flatMap((setting) => ['-c', setting])
  const [command, args] = asOther(join(programs, 'postgres'), ['-D', data, ...settings])
  const child = spawn(command, args, { stdio: 'ignore', cwd: '/' })
  process.once('exit', () => child.kill('SIGQUIT'))
  for (let tries = 0; ; tries++) {
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' })
    const isUp = await client
      .connect()
      .then(async () => (await client.query('SELECT pg_is_in_recovery() AS recovering')).rows[0].recovering === false)
      .catch(() => false)
    await client.end().catch(() => {})
    if (isUp) break
    if (tries > 1200) throw new Error('PostgreSQL does not start')
    await sleep(100)
  }
  return {
    async stop() {
      pgRun('pg_ctl', 'stop', '-D', data, '-m', 'fast')
    },
  }
}

const query = async (text: string) => {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' })
  await client.connect()
  return client.query(text).finally(() => client.end())
}

const data = join(folder, 'pinfold')
mkdirSync(data)
const database = `postgres://postgres@127.0.0.1:${port}/postgres`
await using bucket = values.bucket ? await startBucket() : undefined
const where = {
  args: ['--data', data, '--database', database],
  env: {
    PINFOLD_MASTER_KEY: randomBytes(32).toString('hex'),
    ...bucket?.aws,
    ...(bucket && { PINFOLD_BLOBS: bucket.url() }),
  },
}
const listen = await freeAddress()
const env = { PINFOLD_URL: `http://${listen}` }
type Told = { path: string; digest: string; at: number }

console.log(`seed ${seed}`)
const { below } = randomFrom(seed)
let cluster = join(folder, 'pg0')
pgRun('initdb', '-D', cluster, '-A', 'trust', '-U', 'postgres')
let postgres = await startPostgres(cluster)
for (let round = 1; round <= rounds; round++) {
  const server = await startProcess(where, { listen, env })
  const token = await tokenOf(where, ['--audience', 'registry'])
  if (round === 1) {
    await clientOf(server.url, await tokenOf(where)).post('/iam/v2/groups/', { name: 'acme' })
  }
  const base = join(folder, `base${round}`)
  pgRun('pg_basebackup', '-h', '127.0.0.1', '-p', String(port), '-U', 'postgres', '-D', base)
  const client = registryClient(server.url, token)
  const told: Told[] = []
  const began = Date.now()
  let n = 0
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      while (Date.now() - began < seconds * 1000) {
        const [repo, tag] = [`acme/r${n % 4}`, `round${round}-${n++}`]
        const { digest } = await client.pushImage(repo, tag)
        told.push({ path: `${repo}/manifests/${tag}`, digest, at: Date.now() })
      }
    }),
  )
  // Between two of them, so that a restore has something to leave out as well.
  const to = began + 1000 + below(Math.max(1, seconds * 1000 - 2000))
  server.kill('SIGTERM')
  await server.exited
  await query('SELECT pg_switch_wal()')
  await postgres.stop()

  cluster = base
  // At its start PostgreSQL knows no names of time zones, not even Z.
  const target = new Date(to).toISOString().replace('T', ' ').replace('Z', '+00')
  writeFileSync(join(cluster, 'recovery.signal'), '')
  if (isRoot) execFileSync('chown', ['postgres', join(cluster, 'recovery.signal')])
  postgres = await startPostgres(cluster, [
    `restore_command=cp ${archive}/%f %p`,
    `recovery_target_time=${target}`,
    'recovery_target_action=promote',
  ])
  const before = performance.now()
  const restored = await runProcess(['restored', ...where.args], { env: { ...where.env, ...env } })
  assert.equal(restored.code, 0, restored.stderr + restored.stdout)
  const verified = await runProcess(['verify', ...where.args, '-o', 'json'], { env: { ...where.env, ...env } })
  const took = (performance.now() - before) / 1000
  assert.equal(verified.code, 0, verified.stdout + verified.stderr)
  await using again = await startProcess(where, { listen, env })
  const reader = registryClient(again.url, await tokenOf(where, ['--audience', 'registry']))
  let [there, gone] = [0, 0]
  for (const { path, digest, at } of told) {
    const got = await reader.call('GET', path)
    if (got.status === 200) {
      assert.equal(got.headers['docker-content-digest'], digest)
      for (const { digest: layer } of (got.body as { layers: { digest: string }[] }).layers) {
        await reader.ok(200, 'GET', `${path.replace(/\/manifests\/.*/, '')}/blobs/${layer}`)
      }
      there++
    } else gone++
    // The time of a commit is a moment before its answer.
    if (at < to) assert.equal(got.status, 200, `${path} was acknowledged ${to - at} ms before ${target}, and is gone`)
  }
  console.log(
    `round ${round}: restored to ${target}, ${there} of ${told.length} pushes are there, ${gone} were later, 0 missing; ` +
      `restored and verified in ${took.toFixed(1)} s`,
  )
  again.kill('SIGTERM')
  await again.exited
}
await postgres.stop()
