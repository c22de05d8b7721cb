import assert from 'node:assert/strict'
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { BoundedMessage } from './small-chunks.ts'

const size = 8 * 1024 * 1024

/** Sends a large body to a server that reads it with `take`. Returns the result of `take`. */
async function send<T>(take: (req: IncomingMessage) => Promise<T>): Promise<T> {
  const taken = Promise.withResolvers<T>()
  const server = http.createServer({ IncomingMessage: BoundedMessage }, (req, res) => {
    take(req).then(taken.resolve, taken.reject)
    req.once('end', () => res.end())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const client = http.request({ port, host: '127.0.0.1', method: 'PUT', headers: { 'content-length': size } })
  client.end(Buffer.alloc(size, 1))
  const [answer] = (await once(client, 'response')) as [IncomingMessage]
  answer.resume()
  await once(answer, 'end')
  server.close()
  server.closeAllConnections()
  return taken.promise
}

test('reads at most 256 KiB of a body in one turn of the event loop', async () => {
  let [total, ofTurn, most] = [0, 0, 0]
  await send(async (req) => {
    req.on('data', (chunk: Buffer) => {
      total += chunk.length
      if (ofTurn === 0) {
        setImmediate(() => {
          ofTurn = 0
        })
      }
      ofTurn += chunk.length
      most = Math.max(most, ofTurn)
    })
    await once(req, 'end')
  })
  assert.equal(total, size)
  assert.ok(most <= 256 * 1024, `${most} bytes`)
})

test('a paused body that is read as an async iterable arrives completely', async () => {
  const total = await send(async (req) => {
    let bytes = 0
    for await (const chunk of req as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    return bytes
  })
  assert.equal(total, size)
})
