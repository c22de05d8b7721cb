// Checkpoint stores, a folder and a bucket: compare and swap, names, and separation from other parts of the store.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Blobs, checkpointFolder, StoreUnavailable } from '#blobs/blobs.ts'
import { openDisk } from '#blobs/disk.ts'
import { parseBucket } from '#blobs/s3/bucket.ts'
import { openBucket } from '#blobs/s3/store.ts'
import { noBucket, startBucket, type TestBucket } from '../support/bucket.ts'
import { type Fault, startFaultProxy } from '../support/fault-proxy.ts'

const folder = mkdtempSync(join(tmpdir(), 'pinfold-checkpoints-'))
let bucket: TestBucket
before(async () => {
  if (!noBucket) bucket = await startBucket()
})
after(async () => {
  rmSync(folder, { recursive: true, force: true })
  await bucket?.[Symbol.asyncDispose]()
})

/**
 * `make` opens the same store several times, like several servers. `skipRaces` is for a store that does not compare and replace
 * in one step: versitygw lets a second writer in between.
 */
type Kind = { name: string; skip: string | false; skipRaces: string | false; make: () => () => Promise<Blobs> }
const kinds: Kind[] = [
  {
    name: 'a folder',
    skip: false,
    skipRaces: false,
    make() {
      const own = mkdtempSync(join(folder, 'store-'))
      return () => openDisk(own)
    },
  },
  {
    name: 'a bucket',
    skip: noBucket,
    skipRaces: noBucket || 'versitygw compares and replaces in two steps',
    make() {
      const at = parseBucket(bucket.url())
      return () => openBucket(at, { env: bucket.aws })
    },
  },
]

const namesOf = async ({ checkpoints }: Blobs): Promise<string[]> => (await Array.fromAsync(checkpoints.list())).sort()

for (const { name, skip, skipRaces, make } of kinds) {
  test(`${name} replaces a checkpoint only if its version is the expected version`, { skip }, async () => {
    const store = await make()()
    await store.keepId('an id')
    const { checkpoints } = store
    assert.equal(await checkpoints.read('one'), undefined)
    assert.equal(await checkpoints.write('one', 'text\n', '7'), undefined, 'there is none to replace')
    const first = await checkpoints.write('one', 'first\n', undefined)
    assert.ok(first)
    assert.deepEqual(await checkpoints.read('one'), { text: 'first\n', version: first })
    assert.equal(await checkpoints.write('one', 'again\n', undefined), undefined)
    const second = await checkpoints.write('one', 'second\n', first)
    assert.ok(second)
    assert.equal(await checkpoints.write('one', 'late\n', first), undefined)
    assert.deepEqual(await checkpoints.read('one'), { text: 'second\n', version: second })
    await checkpoints.write('two', 'other\n', undefined)
    assert.deepEqual(await namesOf(store), ['one', 'two'])
    assert.equal(checkpoints.isAtomic(), true)
    store.close()
  })

  test(`one of many concurrent writers to ${name} replaces a version`, { skip: skipRaces }, async () => {
    const open = make()
    const stores = await Promise.all(Array.from({ length: 4 }, open))
    await stores[0]!.keepId('an id')
    let version: string | undefined
    for (let round = 0; round < 12; round++) {
      const expected = version
      const tried = await Promise.all(
        Array.from({ length: 16 }, async (_, i) => {
          const text = `round ${round} writer ${i}\n`
          return { text, version: await stores[i % 4]!.checkpoints.write('one', text, expected) }
        }),
      )
      const won = tried.filter((one) => one.version !== undefined)
      assert.equal(won.length, 1, `round ${round}`)
      assert.deepEqual(await stores[round % 4]!.checkpoints.read('one'), won[0])
      version = won[0]!.version
    }
    for (const store of stores) store.close()
  })

  test(`many concurrent writers in ${name} lose no counter increment`, { skip: skipRaces }, async () => {
    const open = make()
    const stores = await Promise.all(Array.from({ length: 3 }, open))
    await stores[0]!.keepId('an id')
    const raised: number[] = []
    const raise = async ({ checkpoints }: Blobs): Promise<void> => {
      for (let own = 0; own < 10; ) {
        const known = await checkpoints.read('count')
        const next = Number(known?.text ?? 0) + 1
        if ((await checkpoints.write('count', `${next}\n`, known?.version)) === undefined) continue
        raised.push(next)
        own++
      }
    }
    await Promise.all(stores.map(raise))
    assert.equal(new Set(raised).size, 30, 'two writers raised the same count')
    // A write that another one replaces before its end is refused, although the other writer has read its text. So the count can
    // be higher than the number of writes that succeeded.
    assert.equal(Number((await stores[0]!.checkpoints.read('count'))?.text), Math.max(...raised))
    for (const store of stores) store.close()
  })

  test(`garbage collection of ${name} does not list checkpoints`, { skip }, async () => {
    const store = await make()()
    await store.keepId('an id')
    await store.checkpoints.write('one', 'text\n', undefined)
    assert.deepEqual(await Array.fromAsync(store.list()), [])
    store.close()
  })
}

test('a folder keeps one file for each checkpoint, without lock or temporary files', async () => {
  const own = mkdtempSync(join(folder, 'store-'))
  const { checkpoints } = await openDisk(own)
  let version: string | undefined
  for (let i = 0; i < 5; i++) version = await checkpoints.write('one', `${i}\n`, version)
  assert.deepEqual(readdirSync(join(own, checkpointFolder, 'one')), [version])
  assert.deepEqual(readdirSync(join(own, 'uploads')), [])
})

test('a folder skips a checkpoint truncated by a crash, and continues after it', async () => {
  const own = mkdtempSync(join(folder, 'store-'))
  const { checkpoints } = await openDisk(own)
  const first = await checkpoints.write('one', 'first\n', undefined)
  writeFileSync(join(own, checkpointFolder, 'one', '2'), 'sec')
  const found = await checkpoints.read('one')
  assert.deepEqual(found, { text: 'first\n', version: '2' })
  assert.equal(await checkpoints.write('one', 'late\n', first), undefined)
  assert.equal(await checkpoints.write('one', 'third\n', found!.version), '3')
  assert.deepEqual(await checkpoints.read('one'), { text: 'third\n', version: '3' })
})

test('a folder that is not writable returns an error, and keeps its content', async () => {
  const own = mkdtempSync(join(folder, 'store-'))
  const { checkpoints } = await openDisk(own)
  mkdirSync(join(own, checkpointFolder))
  writeFileSync(join(own, checkpointFolder, 'one'), '')
  await assert.rejects(checkpoints.write('one', 'text\n', undefined))
  assert.ok(!existsSync(join(own, checkpointFolder, 'one', '1')))
  assert.deepEqual(readdirSync(join(own, 'uploads')), [])
})

test('finds that a bucket write succeeded although its response was lost', { skip: noBucket }, async () => {
  await using proxy = await startFaultProxy(bucket.origin)
  const store = await openBucket(parseBucket(bucket.url(proxy.origin)), { env: bucket.aws })
  await store.keepId('an id')
  const { checkpoints } = store
  await checkpoints.write('one', 'first\n', undefined)
  const first = await checkpoints.read('one')
  const faults: Fault[] = ['lost answer']
  proxy.fail(({ method, url }) => (method === 'PUT' && url.includes('/one') ? faults.pop() : undefined))
  assert.equal(await checkpoints.write('one', 'second\n', first!.version), undefined)
  assert.equal((await checkpoints.read('one'))?.text, 'second\n')
  proxy.fail(() => '500')
  await assert.rejects(checkpoints.read('one'), StoreUnavailable)
  await assert.rejects(checkpoints.write('one', 'third\n', first!.version), StoreUnavailable)
  store.close()
})

/** A bucket that ignores the conditions of writes, or answers that it does not support them. */
async function startSimpleBucket(answer: 'ignores' | 'refuses') {
  const objects = new Map<string, string>()
  const server = createServer(async (req, res) => {
    const key = req.url ?? ''
    const body = (await Array.fromAsync(req as AsyncIterable<Buffer>)).join('')
    const etag = (text: string) => `"${createHash('md5').update(text).digest('hex')}"`
    const isConditional = req.headers['if-match'] !== undefined || req.headers['if-none-match'] !== undefined
    if (req.method === 'PUT' && isConditional && answer === 'refuses') {
      res.writeHead(501).end('<Error><Code>NotImplemented</Code></Error>')
    } else if (req.method === 'PUT') {
      objects.set(key, body)
      res.writeHead(200, { etag: etag(body) }).end()
    } else {
      const found = objects.get(key)
      if (found === undefined) res.writeHead(404).end('<Error><Code>NoSuchKey</Code></Error>')
      else res.writeHead(200, { etag: etag(found) }).end(found)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  objects.set('/plain/pinfold-id', 'an id\n')
  return {
    url: `s3://plain?endpoint=http://127.0.0.1:${port}`,
    objects,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

for (const answer of ['ignores', 'refuses'] as const) {
  test(`in a bucket that ${answer} conditions, a write reads and compares first`, async () => {
    await using simple = await startSimpleBucket(answer)
    const env = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' }
    const store = await openBucket(parseBucket(simple.url), { env })
    const { checkpoints } = store
    assert.equal(checkpoints.isAtomic(), true, 'nothing is known yet')
    const first = await checkpoints.write('one', 'first\n', undefined)
    assert.ok(first)
    assert.equal(checkpoints.isAtomic(), false)
    assert.equal(await checkpoints.write('one', 'again\n', undefined), undefined)
    const second = await checkpoints.write('one', 'second\n', first)
    assert.ok(second)
    assert.equal(await checkpoints.write('one', 'late\n', first), undefined)
    assert.deepEqual(await checkpoints.read('one'), { text: 'second\n', version: second })
    assert.equal(simple.objects.get('/plain/pinfold-id'), 'an id\n', 'the question has changed nothing')
    assert.equal(store.isUp(), true)
    store.close()
  })
}
