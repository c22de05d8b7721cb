// A database that was set back next to a current blob store, with the real program.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseCheckpoint } from '#lib/tlog/checkpoint.ts'
import { parseNote } from '#lib/tlog/notes.ts'
import { parsePolicy } from '#lib/tlog/policy.ts'
import { noBucket, startBucket } from '../support/bucket.ts'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, freeAddress, run, startInProcess, type TestStorage, tokenOf } from '../support/process.ts'
import { eventually } from '../support/receiver.ts'
import { registryClient } from '../support/registry.ts'

const database = process.env.PINFOLD_TEST_DATABASE
const isThere = (program: string) => (process.env.PATH ?? '').split(':').some((dir) => existsSync(join(dir, program)))
const noDump = Boolean(database) && !isThere('pg_dump') && 'pg_dump is not there'

/** Copies the database of a stopped server. */
function keep(storage: TestStorage, folder: string): void {
  if (database) {
    execFileSync('pg_dump', [
      '--format=custom',
      `--schema=${storage.schema}`,
      `--file=${join(folder, 'dump')}`,
      storage.server!,
    ])
  } else cpSync(join(storage.data, 'pinfold.db'), join(folder, 'pinfold.db'))
}

async function bringBack(storage: TestStorage, folder: string): Promise<void> {
  if (database) {
    await storage.query(`DROP SCHEMA ${storage.schema} CASCADE`)
    execFileSync('pg_restore', [`--dbname=${storage.server}`, '--exit-on-error', join(folder, 'dump')])
    return
  }
  for (const end of ['-wal', '-shm']) rmSync(join(storage.data, `pinfold.db${end}`), { force: true })
  cpSync(join(folder, 'pinfold.db'), join(storage.data, 'pinfold.db'))
}

async function serve(storage: TestStorage, listen: string, env: Record<string, string>) {
  const running = await startInProcess(storage, { listen, env })
  const operator = clientOf(running.url, await tokenOf(storage))
  const registry = registryClient(running.url, await tokenOf(storage, ['--audience', 'registry']))
  const noteAt = async (path: string): Promise<string | undefined> => {
    const answer = await operator.get(`${path}/checkpoint`)
    return answer.status === 200 ? parseNote(answer.text)!.text : undefined
  }
  return {
    ...running,
    operator,
    push: (tag: string) => registry.pushImage('acme/app', tag),
    noteAt,
    sizeAt: async (path: string) => parseCheckpoint((await noteAt(path)) ?? '')?.size ?? 0,
    ready: async () => (await operator.get('/readyz')).text,
    async stop() {
      running.kill('SIGTERM')
      await running.exited
    },
  }
}

for (const [store, skip] of [
  ['folder', noDump],
  ['bucket', noDump || noBucket],
] as const) {
  test(`after restoring an older database with the same ${store}, signs nothing until pinfold server complete-restore`, {
    skip,
  }, async () => {
    await using storage = await createStorage()
    await using bucket = store === 'bucket' ? await startBucket() : undefined
    const folder = mkdtempSync(join(tmpdir(), 'pinfold-older-'))
    const listen = await freeAddress()
    const env: Record<string, string> = {
      // The host of this URL is the first part of the origin of the log.
      PINFOLD_URL: `http://${listen}`,
      ...(bucket && { ...bucket.aws, PINFOLD_BLOBS: bucket.url() }),
    }
    const command = (...words: string[]) => run([...words, ...storage.args], { env: { ...storage.env, ...env } })
    try {
      const first = await serve(storage, listen, env)
      const org = (await first.operator.post('/iam/v2/groups/', { name: 'acme' })).body.uid as string
      const path = `/ledger/${org}`
      await first.push('v1')
      await eventually(
        () => first.sizeAt(path),
        (size) => size === 2,
      )
      await first.stop()
      keep(storage, folder)

      const second = await serve(storage, listen, env)
      for (const tag of ['v2', 'v3']) await second.push(tag)
      await eventually(
        () => second.sizeAt(path),
        (size) => size === 4,
      )
      await second.stop()

      await bringBack(storage, folder)
      const older = await serve(storage, listen, env)
      const before = await older.noteAt(path)
      for (const tag of ['w1', 'w2', 'w3']) await older.push(tag)
      await eventually(older.ready, (text) => text.includes('signing is suspended for 1 transparency log'))
      assert.equal(await older.noteAt(path), before, 'nothing is signed')
      await older.push('w4')
      const found = await command('server', 'verify', '--only', 'checkpoints')
      assert.equal(found.code, 1)
      assert.match(found.stderr, /^checkpoints: log does not extend its stored checkpoint: [\d.:]+\/ledger\//m)
      await older.stop()

      const settled = await command('server', 'complete-restore')
      assert.deepEqual([settled.code, settled.stderr], [0, ''], settled.stdout)
      const last = await serve(storage, listen, env)
      await last.push('x1')
      const isNew = ({ name }: { name: string }) => name.includes('/2-')
      const names = async () => parsePolicy((await last.operator.get(`${path}/policy`)).text).logs.filter(isNew)
      const [log] = await eventually(names, (logs) => logs.length === 1)
      const next = log!.name.slice(log!.name.indexOf('/'))
      // Entries of the log: the log itself, v1, w1 to w4, and x1.
      await eventually(
        () => last.sizeAt(next),
        (size) => size === 7,
      )
      assert.equal(await last.ready(), 'ok\n')
      assert.equal((await command('server', 'verify', '--only', 'checkpoints')).code, 0)
      await last.stop()
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
}
