// An embedded database that Litestream replicates to a folder while clients push, as the guide to backups describes. Then server and
// Litestream are killed and the database is lost. It is restored as of a random moment, or as of the end. Every push that was
// acknowledged two seconds before must be there, none of two seconds after, and a verification must find nothing missing.
// By hand, with Litestream 0.5 on the PATH: bin/pinfold-node test/fuzz/litestream.ts --seconds 60 --rounds 4
//
// The log of the database must not grow beyond --log-mib in the meantime, since Litestream makes the checkpoints.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, freeAddress, runProcess, startProcess, tokenOf } from '../support/process.ts'
import { randomFrom } from '../support/random.ts'
import { registryClient } from '../support/registry.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    rounds: { type: 'string', default: '4' },
    'log-mib': { type: 'string', default: '64' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [seconds, rounds, logMib, seed] = [values.seconds, values.rounds, values['log-mib'], values.seed].map(Number) as [
  number,
  number,
  number,
  number,
]
console.log(`seed ${seed}, Litestream ${execFileSync('litestream', ['version'], { encoding: 'utf8' }).trim()}`)
const { below } = randomFrom(seed)
/** Litestream copies changes each second, and its times have milliseconds. */
const lagMs = 2000
delete process.env.PINFOLD_TEST_DATABASE

for (let round = 1; round <= rounds; round++) {
  await using storage = await createStorage()
  const replicas = mkdtempSync(join(tmpdir(), 'pinfold-litestream-'))
  const replica = `file://${join(replicas, 'pinfold')}`
  const file = join(storage.data, 'pinfold.db')
  const listen = await freeAddress()
  const env = { PINFOLD_URL: `http://${listen}`, PINFOLD_SQLITE_CHECKPOINTS: 'external' }
  const litestream = spawn('litestream', ['replicate', '-log-level', 'error', file, replica], { stdio: 'inherit' })
  const ended = once(litestream, 'exit')
  try {
    const server = await startProcess(storage, { listen, env })
    await clientOf(server.url, await tokenOf(storage)).post('/iam/v2/groups/', { name: 'acme' })
    const client = registryClient(server.url, await tokenOf(storage, ['--audience', 'registry']))
    const told: { path: string; digest: string; began: number; at: number }[] = []
    const first = Date.now()
    let log = 0
    let n = 0
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        while (Date.now() < first + seconds * 1000) {
          const [repo, tag] = [`acme/r${n % 4}`, `t${n++}`]
          const began = Date.now()
          const { digest } = await client.pushImage(repo, tag)
          told.push({ path: `${repo}/manifests/${tag}`, digest, began, at: Date.now() })
          log = Math.max(log, statSync(`${file}-wal`).size)
        }
      }),
    )
    await sleep(lagMs)
    const last = Date.now()
    assert.equal(litestream.exitCode, null, 'Litestream has ended')
    server.kill('SIGKILL')
    litestream.kill('SIGKILL')
    await Promise.all([server.exited, ended])

    for (const end of ['', '-wal', '-shm', '-litestream']) rmSync(`${file}${end}`, { force: true, recursive: true })
    rmSync(join(storage.data, '.pinfold.db-litestream'), { force: true, recursive: true })
    const moment = round % 2 === 0 ? last : first + lagMs * 2 + below(Math.max(1, seconds * 1000 - lagMs * 2))
    const when = round % 2 === 0 ? [] : ['-timestamp', new Date(moment).toISOString()]
    const before = performance.now()
    execFileSync('litestream', ['restore', ...when, '-o', file, replica])
    const restored = await runProcess(['restored', ...storage.args], { env: { ...storage.env, ...env } })
    assert.equal(restored.code, 0, restored.stderr + restored.stdout)
    const verified = await runProcess(['verify', '--hash', ...storage.args], { env: { ...storage.env, ...env } })
    assert.equal(verified.code, 0, verified.stderr + verified.stdout)
    const took = (performance.now() - before) / 1000

    const again = await startProcess(storage, { listen, env: { ...env, PINFOLD_SQLITE_CHECKPOINTS: 'server' } })
    const reader = registryClient(again.url, await tokenOf(storage, ['--audience', 'registry']))
    const counts = { there: 0, later: 0 }
    for (const { path, digest, began, at } of told) {
      const got = await reader.call('GET', path)
      if (at < moment - lagMs) assert.equal(got.status, 200, `${path} was acknowledged before, and is gone`)
      if (began > moment + lagMs) assert.equal(got.status, 404, `${path} was pushed after the moment`)
      counts[got.status === 200 ? 'there' : 'later']++
      if (got.status === 200) assert.equal(got.headers['docker-content-digest'], digest)
    }
    again.kill('SIGTERM')
    await again.exited
    assert.ok(counts.there > 0, 'nothing was tried')
    console.log(
      `round ${round}, ${when.length > 0 ? 'to a moment' : 'to the end'}: ${counts.there} of ${told.length} pushes are there, ` +
        `${counts.later} were later, 0 missing; restored and verified in ${took.toFixed(1)} s; the log had ` +
        `${(log / 2 ** 20).toFixed(1)} MiB at most`,
    )
    assert.ok(log < logMib * 2 ** 20, 'nobody has brought the log into the database')
  } finally {
    litestream.kill('SIGKILL')
    rmSync(replicas, { recursive: true, force: true })
  }
}
