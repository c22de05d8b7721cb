// Blobs whose file is lost: clients get 404, and pushing the same content restores the blob.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '#api/server.ts'
import { sql } from '#db/sql.ts'
import { checkUsage } from '../support/check-usage.ts'
import { captureLog } from '../support/log.ts'
import { codeOf, digestOf, imageOf, registryClient, startRegistry, types } from '../support/registry.ts'

const name = 'acme/app'
const content = 'x'.repeat(3000)
const digest = digestOf(content)

/** A registry with the blob in two repositories, and without its file. */
async function startAfterLoss() {
  const registry = await startRegistry()
  const log = captureLog('error')
  const server = await startServer({ ...registry.app, log: log.log })
  const token = await registry.tokenFor(registry.pusher.uid, { audience: new URL(server.url).host, issuer: server.url })
  const client = registryClient(server.url, token)
  await client.pushBlob(name, content)
  await client.ok(201, 'POST', `acme/other/blobs/uploads/?mount=${digest}&from=${name}`)
  const locationOf = async () => {
    const row = await registry.app.db.get<{ location: string }>(
      sql`SELECT location FROM blobs WHERE digest = ${digest}`,
    )
    return row!.location
  }
  const lose = async () => {
    await registry.app.blobs.remove(await locationOf())
    // HEAD does not ask the bucket, so another request must detect the loss first.
    await registry.app.blobs.has({ location: await locationOf(), size: content.length })
  }
  await lose()
  return {
    registry,
    client,
    log,
    lose,
    async [Symbol.asyncDispose]() {
      await server.close()
      await registry[Symbol.asyncDispose]()
    },
  }
}

test('a lost blob returns 404 for HEAD, GET and a mount, and is in the log and the metrics', async () => {
  await using scene = await startAfterLoss()
  const { client, log } = scene
  const missing = async () => {
    const { text } = await scene.registry.operator.get('/metrics')
    return Number(/^pinfold_blob_missing_total (\d+)$/m.exec(text)?.[1])
  }
  assert.equal(await missing(), 0)
  const head = await client.call('HEAD', `${name}/blobs/${digest}`)
  const byHead = await missing()
  assert.deepEqual([head.status, byHead > 0], [404, true])
  for (const headers of [{}, { range: 'bytes=0-9' }]) {
    const got = await client.call('GET', `${name}/blobs/${digest}`, { headers })
    assert.deepEqual([got.status, codeOf(got)], [404, 'BLOB_UNKNOWN'])
  }
  assert.ok((await missing()) >= byHead + 2)
  for (const from of [`&from=${name}`, '']) {
    await client.ok(202, 'POST', `acme/third/blobs/uploads/?mount=${digest}${from}`)
  }
  const line = await log.until(({ message }) => String(message).startsWith('content of a blob is missing'))
  assert.equal(line.digest, digest)
  assert.deepEqual(
    log.lines.filter(({ message }) => /failed/.test(String(message))),
    [],
  )
})

test('pushing a lost blob again restores it in all repositories, in one request or in parts', async () => {
  await using scene = await startAfterLoss()
  const { client, registry, lose } = scene
  const whole = () => client.pushBlob(name, content)
  const closing = async () => {
    const { headers } = await client.ok(202, 'POST', 'acme/other/blobs/uploads/')
    await client.ok(201, 'PUT', `${headers.location}?digest=${digest}`, { body: content })
  }
  const pieces = async () => {
    const { headers } = await client.ok(202, 'POST', 'acme/elsewhere/blobs/uploads/')
    await client.ok(202, 'PATCH', String(headers.location), { body: content.slice(0, 1000) })
    await client.ok(202, 'PATCH', String(headers.location), { body: content.slice(1000) })
    await client.ok(201, 'PUT', `${headers.location}?digest=${digest}`)
  }
  for (const push of [whole, closing, pieces]) {
    await push()
    for (const repo of [name, 'acme/other']) {
      assert.equal((await client.ok(200, 'GET', `${repo}/blobs/${digest}`)).bytes.toString(), content)
      await client.ok(200, 'HEAD', `${repo}/blobs/${digest}`)
    }
    await checkUsage(registry)
    await lose()
    await client.ok(404, 'HEAD', `${name}/blobs/${digest}`)
  }
  // One of several concurrent pushes restores the blob, and none leaves a file behind.
  await Promise.all(Array.from({ length: 5 }, whole))
  assert.equal((await client.ok(200, 'GET', `${name}/blobs/${digest}`)).bytes.toString(), content)
  const files = []
  for await (const { location } of registry.app.blobs.list()) files.push(location)
  assert.deepEqual(files.length, 1, files.join(' '))
  await checkUsage(registry)
})

test('an image with a lost layer is complete again after a client pushes the layer', async () => {
  await using scene = await startAfterLoss()
  const { client } = scene
  const config = await client.pushBlob(name, '{}', types.config)
  const layer = { mediaType: types.layer, digest, size: content.length }
  for (const blob of [config, layer]) {
    const { status } = await client.call('HEAD', `${name}/blobs/${blob.digest}`)
    assert.equal(status, blob === config ? 200 : 404)
    if (status === 404) await client.pushBlob(name, content)
  }
  await client.pushManifest(name, imageOf(config, [layer]), 'latest')
  assert.equal((await client.ok(200, 'GET', `${name}/blobs/${digest}`)).bytes.length, content.length)
})
