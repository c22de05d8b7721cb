// A restore drill: backups while clients push, then a loss of all data, and a restore of the newest backup.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { takeServeLock } from '#db/sqlite/serve-lock.ts'
import { operatorUid } from '#lib/uid.ts'
import { noBucket, startBucket } from '../support/bucket.ts'
import { ok } from '../support/expect.ts'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, run, startInProcess, startProcess, type TestStorage, tokenOf } from '../support/process.ts'
import { registryClient } from '../support/registry.ts'

const name = 'acme/app'
const server = process.env.PINFOLD_TEST_DATABASE
const isThere = (program: string) => (process.env.PATH ?? '').split(':').some((dir) => existsSync(join(dir, program)))
const noDump = Boolean(server) && !isThere('pg_dump') && 'pg_dump is not there'

/** Dumps the database, as an administrator of PostgreSQL does before `pinfold server backup`. */
function dump(storage: TestStorage, file: string): void {
  execFileSync('pg_dump', ['--format=custom', `--schema=${storage.schema}`, `--file=${file}`, storage.server])
}

async function lose(storage: TestStorage): Promise<void> {
  for (const one of readdirSync(storage.data)) {
    if (one !== 'master.key') rmSync(join(storage.data, one), { recursive: true })
  }
  if (server) await storage.query(`DROP SCHEMA ${storage.schema} CASCADE`)
}

function bringBack(storage: TestStorage, folder: string, dumped: string): void {
  if (server) execFileSync('pg_restore', [`--dbname=${storage.server}`, '--exit-on-error', dumped])
  else cpSync(join(folder, 'pinfold.db'), join(storage.data, 'pinfold.db'))
}

async function serve(storage: TestStorage, env: Record<string, string>) {
  const running = await startProcess(storage, { env })
  const client = registryClient(running.url, await tokenOf(storage, ['--audience', 'registry']))
  const pull = async (tag: string) => {
    const image = await client.ok(200, 'GET', `${name}/manifests/${tag}`)
    for (const { digest } of [image.body.config, ...image.body.layers])
      await client.ok(200, 'GET', `${name}/blobs/${digest}`)
    return image.headers['docker-content-digest']
  }
  return { ...running, client, pull, operator: clientOf(running.url, await tokenOf(storage)) }
}

for (const [store, skip] of [
  ['folder', noDump],
  ['bucket', noDump || noBucket],
] as const) {
  test(`restores all acknowledged writes from before a backup, with blobs in a ${store}`, { skip }, async () => {
    await using storage = await createStorage()
    await using bucket = store === 'bucket' ? await startBucket() : undefined
    const to = mkdtempSync(join(tmpdir(), 'pinfold-backups-'))
    const dumped = join(to, 'dump')
    const env: Record<string, string> = bucket ? { ...bucket.aws, PINFOLD_BLOBS: bucket.url() } : {}
    const command = (words: string[], more: Record<string, string> = {}) =>
      run([...words, ...storage.args], { env: { ...storage.env, ...env, ...more } })
    try {
      const first = await serve(storage, env)
      await first.operator.post('/iam/v2/groups/', { name: 'acme' })
      const pushed = new Map<string, string>()
      const push = async (tag: string) => {
        const { digest } = await first.client.pushImage(name, tag)
        pushed.set(tag, digest)
      }
      await push('v1')
      await first.client.pushBlob(name, randomBytes(100_000))
      if (server) dump(storage, dumped)
      const early = await command(['server', 'backup', '--to', to, '-o', 'json'])
      assert.deepEqual([early.code, early.stderr], [0, ''])
      await push('v2')
      const known = new Map(pushed)
      if (server) dump(storage, dumped)
      // Other clients push meanwhile. The backup contains each of their pushes completely or not at all.
      let over = false
      const pushing = (async () => {
        for (let i = 0; !over; i++) await push(`meanwhile-${i}`)
      })()
      const made = await command(['server', 'backup', '--to', to, '-o', 'json', '--keep', '1'])
      over = true
      await pushing
      assert.deepEqual([made.code, made.stderr], [0, ''])
      const { folder, copied, contents } = JSON.parse(made.stdout) as {
        folder: string
        copied: number
        contents: number
      }
      assert.ok(copied >= 1 && contents > copied, 'only what is new')
      const folders = globSync('*/backup.json', { cwd: to })
      assert.equal(folders.length, server ? 2 : 1)
      assert.equal(JSON.parse(readFileSync(join(folder, 'backup.json'), 'utf8')).format, 1)
      await push('lost')
      first.kill('SIGKILL')
      await first.exited

      await lose(storage)
      bringBack(storage, folder, dumped)
      const blobs = join(storage.data, 'blobs')
      mkdirSync(blobs, { recursive: true })
      cpSync(join(to, 'blobs'), blobs, { recursive: true })
      const back = { PINFOLD_BLOBS: blobs }
      // The server refuses to start until the restore was completed.
      await assert.rejects(startProcess(storage, { env: back }), /the blobs of this database are in another folder/)
      const settled = await command(['server', 'complete-restore'], back)
      assert.deepEqual([settled.code, settled.stderr], [0, ''], settled.stdout)
      assert.match(settled.stdout, /^the event stream continues at position 100000\d+$/m)
      assert.match(settled.stdout, /^blobs: \d+ examined, all right/m)
      if (bucket) {
        env.PINFOLD_BLOBS = bucket.url()
        const moved = await run(['server', 'blobs', 'copy', blobs, env.PINFOLD_BLOBS, '--switch', ...storage.args], {
          env: { ...storage.env, ...bucket.aws },
        })
        assert.equal(moved.code, 0, moved.stderr)
      }
      const second = await serve(storage, bucket ? env : back)
      for (const [tag, digest] of known) assert.equal(await second.pull(tag), digest)
      const { auditEntries } = ok(await second.operator.get('/events/v2/audit?type=restored'))
      assert.equal(auditEntries.length, 1)
      assert.deepEqual([auditEntries[0].actor, auditEntries[0].group], [operatorUid, '/'])
      assert.ok(settled.stdout.includes(`at position ${JSON.parse(auditEntries[0].body).position}\n`))
      for (const tag of pushed.keys()) {
        if (tag !== 'lost' && (await second.client.call('HEAD', `${name}/manifests/${tag}`)).status === 200)
          await second.pull(tag)
      }
      await second.client.ok(404, 'HEAD', `${name}/manifests/lost`)
      await second.client.pushImage(name, 'v3')
      second.kill('SIGTERM')
      await second.exited
      const whole = await command(['server', 'verify', '--hash'], bucket ? {} : back)
      assert.equal(whole.code, 0, whole.stderr)
    } finally {
      rmSync(to, { recursive: true, force: true })
    }
  })
}

test('the second of two concurrent backups into one folder is refused at once', async () => {
  await using storage = await createStorage()
  const to = mkdtempSync(join(tmpdir(), 'pinfold-backups-'))
  try {
    const back = () => run(['server', 'backup', '--to', to, '--keep', '1', ...storage.args], { env: storage.env })
    const server = await startInProcess(storage)
    server.kill('SIGTERM')
    await server.exited
    const other = takeServeLock(join(to, 'backup.lock'))!
    const refused = await back()
    assert.deepEqual([refused.code, refused.stdout], [1, ''])
    assert.match(
      refused.stderr,
      /^pinfold: no backup was made, because another backup to .* is running; try again when it has finished\n$/,
    )
    assert.deepEqual(globSync('*/backup.json', { cwd: to }), [])
    other.release()
    const made = await back()
    assert.deepEqual([made.code, made.stderr], [0, ''])
  } finally {
    rmSync(to, { recursive: true, force: true })
  }
})

test('refuses a backup into the blob folder of the server, below it, and to an invalid path', async () => {
  await using storage = await createStorage()
  const to = mkdtempSync(join(tmpdir(), 'pinfold-backups-'))
  try {
    const server = await startInProcess(storage)
    server.kill('SIGTERM')
    await server.exited
    const back = (where: string) =>
      run(['server', 'backup', '--to', where, '--keep', '1', ...storage.args], { env: storage.env })
    symlinkSync(storage.data, join(to, 'link'))
    for (const where of [storage.data, `${storage.data}/.`, join(to, 'link'), join(storage.data, 'blobs')]) {
      const refused = await back(where)
      assert.deepEqual([refused.code, refused.stdout], [1, ''], where)
      assert.match(
        refused.stderr,
        /^pinfold: no backup was made, because --to is in the blob folder of the server, .*; use another folder\n$/,
      )
    }
    assert.deepEqual(globSync('{,blobs/}*Z', { cwd: storage.data }), [])
    writeFileSync(join(to, 'file'), '')
    const none = await back(join(to, 'file'))
    assert.deepEqual([none.code, none.stdout], [1, ''])
    assert.match(
      none.stderr,
      /^pinfold: no backup was made, because the folder .*file cannot be created: ENOTDIR; set --to to another folder\n$/,
    )
    assert.equal((await back(join(storage.data, 'backups'))).code, 0, 'beside the blobs there is room')
  } finally {
    rmSync(to, { recursive: true, force: true })
  }
})
