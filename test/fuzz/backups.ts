// Backups of an embedded database at random moments, while clients push continuously. Then the server is killed, and a randomly
// chosen backup is restored. Every push that was acknowledged before the backup began must be there, and a verification must find
// nothing missing. The blob store is not restored. To run it by hand:
//   bin/pinfold-node test/fuzz/backups.ts --seconds 60 --rounds 3
// With --bucket the blobs are in a bucket of versitygw.
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startBucket } from '../support/bucket.ts'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, freeAddress, runProcess, startProcess, tokenOf } from '../support/process.ts'
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
console.log(`seed ${seed}`)
const { below } = randomFrom(seed)
delete process.env.PINFOLD_TEST_DATABASE
await using storage = await createStorage()
await using bucket = values.bucket ? await startBucket() : undefined
const blobs = bucket ? ['--blobs', bucket.url()] : []
const listen = await freeAddress()
const env = { PINFOLD_URL: `http://${listen}`, ...bucket?.aws }
const command = (...words: string[]) =>
  runProcess([...words, ...storage.args, ...blobs], { env: { ...storage.env, ...env } })
const start = () => startProcess(storage, { listen, env, args: blobs })
const clientAt = async (url: string) => registryClient(url, await tokenOf(storage, ['--audience', 'registry']))
type Told = { path: string; digest: string; at: number }
type Made = { folder: string; began: number; ended: number }

async function push(url: string, round: number, told: Told[]): Promise<void> {
  const client = await clientAt(url)
  const until = Date.now() + seconds * 1000
  let n = 0
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      while (Date.now() < until) {
        const [repo, tag] = [`acme/r${n % 4}`, `round${round}-${n++}`]
        const { digest } = await client.pushImage(repo, tag)
        told.push({ path: `${repo}/manifests/${tag}`, digest, at: Date.now() })
      }
    }),
  )
}

async function backUp(to: string, isOver: () => boolean): Promise<Made[]> {
  const made: Made[] = []
  while (!isOver()) {
    await sleep(below(2000))
    const began = Date.now()
    const { code, stdout, stderr } = await command('server', 'backup', '--to', to, '-o', 'json')
    assert.equal(code, 0, stderr)
    made.push({ folder: (JSON.parse(stdout) as { folder: string }).folder, began, ended: Date.now() })
  }
  return made
}

for (let round = 1; round <= rounds; round++) {
  const to = mkdtempSync(join(tmpdir(), 'pinfold-backups-'))
  const server = await start()
  if (round === 1) await clientOf(server.url, await tokenOf(storage)).post('/iam/v2/groups/', { name: 'acme' })
  const told: Told[] = []
  let isOver = false
  const making = backUp(to, () => isOver)
  await push(server.url, round, told)
  isOver = true
  const made = await making
  server.kill('SIGKILL')
  await server.exited

  const chosen = made[below(made.length)]!
  for (const end of ['', '-wal', '-shm']) rmSync(join(storage.data, `pinfold.db${end}`), { force: true })
  cpSync(join(chosen.folder, 'pinfold.db'), join(storage.data, 'pinfold.db'))
  const before = performance.now()
  const restored = await command('server', 'complete-restore')
  assert.equal(restored.code, 0, restored.stderr + restored.stdout)
  const verified = await command('verify', '-o', 'json')
  const took = (performance.now() - before) / 1000
  assert.equal(verified.code, 0, verified.stdout + verified.stderr)
  const again = await start()
  const client = await clientAt(again.url)
  const counts = { there: 0, later: 0 }
  for (const { path, digest, at } of told) {
    const got = await client.call('GET', path)
    if (at < chosen.began) assert.equal(got.status, 200, `${path} was acknowledged before the backup, and is gone`)
    if (got.status !== 200) {
      counts.later++
      continue
    }
    counts.there++
    assert.equal(got.headers['docker-content-digest'], digest)
    for (const layer of (got.body as { layers: { digest: string }[] }).layers) {
      await client.ok(200, 'GET', `${path.replace(/\/manifests\/.*/, '')}/blobs/${layer.digest}`)
    }
  }
  again.kill('SIGTERM')
  await again.exited
  rmSync(to, { recursive: true, force: true })
  assert.ok(counts.there > 0, 'nothing was tried')
  console.log(
    `round ${round}: ${made.length} backups, one of ${chosen.ended - chosen.began} ms restored: ${counts.there} of ${told.length} pushes ` +
      `are there, ${counts.later} were later, 0 missing; restored and verified in ${took.toFixed(1)} s`,
  )
}
