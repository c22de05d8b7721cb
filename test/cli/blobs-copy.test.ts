// Moves the blobs of a running server from its folder to a bucket, and back.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { globSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { noBucket, startBucket } from '../support/bucket.ts'
import { clientOf } from '../support/pinfold.ts'
import { cleanEnv, createStorage, program, project, run, startInProcess, tokenOf } from '../support/process.ts'
import { digestOf, type RegistryClient, registryClient } from '../support/registry.ts'

const name = 'acme/app'

test('moves blobs to a bucket while the server runs, and back to a folder', { skip: noBucket }, async () => {
  await using bucket = await startBucket()
  await using storage = await createStorage()
  const url = bucket.url()
  const env = { ...storage.env, ...bucket.aws }
  const folder = join(storage.data, 'blobs')
  const copy = (...ends: string[]) => run(['server', 'blobs', 'copy', ...ends, ...storage.args], { env })
  const contents: Buffer[] = []
  const start = async (blobs: string) => {
    const server = await startInProcess(storage, { env: { ...bucket.aws, PINFOLD_BLOBS: blobs } })
    const client = registryClient(server.url, await tokenOf(storage, ['--audience', 'registry']))
    const push = async (size: number) => {
      contents.push(randomBytes(size))
      await client.pushBlob(name, contents.at(-1)!)
    }
    const check = async () => {
      for (const content of contents) {
        const got = await client.ok(200, 'GET', `${name}/blobs/${digestOf(content)}`)
        assert.ok(got.bytes.equals(content))
      }
    }
    const stop = async () => {
      server.kill('SIGTERM')
      await server.exited
    }
    return { server, push, check, stop, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
  }

  await using first = await start('')
  await clientOf(first.server.url, await tokenOf(storage)).post('/iam/v2/groups/', { name: 'acme' })
  await first.push(1000)
  await first.push(17 * 1024 * 1024)
  const begun = await copy(folder, url)
  assert.deepEqual([begun.code, begun.stderr], [0, ''])
  assert.match(begun.stdout, /^copied 2 blobs with .*; 0 were already copied$/m)
  await first.push(2000)
  // Two servers of one database with different blob stores would each miss the content of the other.
  const tooEarly = await copy(folder, url, '--switch')
  assert.deepEqual([tooEarly.code, /stop every server first/.test(tooEarly.stderr)], [69, true], tooEarly.stderr)
  await first.stop()
  await assert.rejects(start(url), /the blobs of this database are in another bucket/)
  const moved = await copy(folder, url, '--switch')
  assert.match(moved.stdout, /^copied 1 blobs with .*; 2 were already copied$/m)
  await assert.rejects(start(''), /the blobs of this database are in another folder/)
  assert.match((await copy(folder, url)).stderr, /the first store does not belong to this database/)

  await using second = await start(url)
  await second.check()
  await second.push(3000)
  await second.stop()
  const other = join(storage.data, 'again')
  assert.match((await copy(url, other, '--switch')).stdout, /^copied 4 blobs/m)
  await using third = await start(other)
  await third.check()
  await third.stop()

  const elsewhere = await copy(join(storage.data, 'elsewhere'), url)
  assert.equal(elsewhere.code, 1)
  assert.match(elsewhere.stderr, /the first store does not belong to this database/)
  // Different content of the same size.
  const [file] = globSync('sha256/*/*', { cwd: other }).filter((one) => one.includes(digestOf(contents[0]!).slice(7)))
  writeFileSync(join(other, file!), randomBytes(1000))
  const damaged = await copy(other, bucket.url(), '--switch')
  assert.equal(damaged.code, 1)
  assert.match(damaged.stderr, /the database still uses /)
  assert.match((await copy(other, other)).stderr, /both stores have the same ID/)
  assert.match(damaged.stdout, /^copied 3 blobs/m)
  assert.ok(damaged.stderr.includes(`not copied, because it is damaged or lost: ${file}`), damaged.stderr)
})

test('finds and deletes parts in the copy of an upload that ended before the switch', { skip: noBucket }, async () => {
  await using bucket = await startBucket()
  await using storage = await createStorage()
  const url = bucket.url()
  const env = { ...storage.env, ...bucket.aws }
  const words = ['server', 'blobs', 'copy', join(storage.data, 'blobs'), url, ...storage.args]
  const copy = (...more: string[]) => run([...words, ...more], { env })
  const pieces = () => globSync('uploads/*', { cwd: bucket.fileOf(url, '') })
  const begin = async (client: RegistryClient, body: string) => {
    const { headers } = await client.ok(202, 'POST', `${name}/blobs/uploads/`)
    await client.ok(202, 'PATCH', String(headers.location), { body })
    return { location: String(headers.location), digest: digestOf(body) }
  }
  const finish = (client: RegistryClient, { location, digest }: { location: string; digest: string }) =>
    client.ok(201, 'PUT', `${location}?digest=${digest}`)

  await using first = await startInProcess(storage)
  await clientOf(first.url, await tokenOf(storage)).post('/iam/v2/groups/', { name: 'acme' })
  const before = registryClient(first.url, await tokenOf(storage, ['--audience', 'registry']))
  const ended = await begin(before, 'ended')
  assert.equal((await copy()).code, 0)
  const [stray] = pieces()
  await finish(before, ended)
  const open = await begin(before, 'goes on')
  first.kill('SIGTERM')
  await first.exited
  assert.equal((await copy('--switch')).code, 0)
  assert.equal(pieces().length, 2)
  // Recent parts may belong to a running push.
  const old = new Date(Date.now() - 3 * 24 * 3600_000)
  for (const piece of pieces()) utimesSync(bucket.fileOf(url, piece), old, old)

  const verified = await run(['server', 'verify', '--blobs', url, '--only', 'orphans', ...storage.args], { env })
  assert.deepEqual([verified.code, verified.stderr.match(/^orphans: .*$/gm)?.length], [1, 1], verified.stderr)
  assert.ok(verified.stderr.includes(`content belongs to nothing: ${stray}`), verified.stderr)
  const settings = { ...bucket.aws, PINFOLD_BLOBS: url, PINFOLD_BLOB_TRASH_SECONDS: '0' }
  await using second = await startInProcess(storage, { env: settings })
  const collected = await run(['server', 'gc', ...storage.args], { env: { ...env, PINFOLD_API: second.url } })
  assert.match(collected.stdout, /, 1 stray files/, collected.stderr)
  assert.equal(pieces().includes(stray!), false)
  const after = registryClient(second.url, await tokenOf(storage, ['--audience', 'registry']))
  await finish(after, open)
  for (const { digest } of [ended, open]) await after.ok(200, 'GET', `${name}/blobs/${digest}`)
})

test('a killed copy continues where it stopped, and leaves no partial file', async () => {
  await using storage = await createStorage()
  const [from, to] = [join(storage.data, 'blobs'), join(storage.data, 'copied')]
  const contents = Array.from({ length: 40 }, () => randomBytes(500_000))
  {
    await using server = await startInProcess(storage)
    await clientOf(server.url, await tokenOf(storage)).post('/iam/v2/groups/', { name: 'acme' })
    const client = registryClient(server.url, await tokenOf(storage, ['--audience', 'registry']))
    for (const content of contents) await client.pushBlob(name, content)
    server.kill('SIGTERM')
    await server.exited
  }
  const words = ['server', 'blobs', 'copy', from, to, ...storage.args]
  const copied = () => globSync('sha256/*/*', { cwd: to })
  const child = spawn(program, words, { cwd: project, env: cleanEnv(storage.env), stdio: 'ignore' })
  const exited = once(child, 'exit')
  while (copied().length < 3) await sleep(1)
  child.kill('SIGKILL')
  assert.deepEqual(await exited, [null, 'SIGKILL'])
  // Each file in the copy is complete. Unfinished files have temporary names.
  const there = copied()
  assert.ok(there.length < contents.length, 'it was over before it was killed')
  for (const file of there) {
    assert.ok(file.includes(digestOf(readFileSync(join(to, file))).slice(7)), file)
  }

  const again = await run([...words, '--switch'], { env: storage.env })
  assert.deepEqual([again.code, again.stderr], [0, ''])
  const rest = contents.length - there.length
  assert.match(again.stdout, new RegExp(`^copied ${rest} blobs with .*; ${there.length} were already copied$`, 'm'))
  await using server = await startInProcess(storage, { args: ['--blobs', to] })
  const client = registryClient(server.url, await tokenOf(storage, ['--audience', 'registry']))
  for (const content of contents) {
    assert.ok((await client.ok(200, 'GET', `${name}/blobs/${digestOf(content)}`)).bytes.equals(content))
  }
})
