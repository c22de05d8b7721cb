// Requests over cleartext HTTP/2 refused while their bodies arrive: the response is complete before any reset.
import assert from 'node:assert/strict'
import http2 from 'node:http2'
import { connect } from 'node:net'
import { Duplex } from 'node:stream'
import { after, test } from 'node:test'
import { startRegistry } from '../support/registry.ts'

const registry = await startRegistry()
after(() => registry[Symbol.asyncDispose]())
const { hostname, port } = new URL(registry.url)

/** Stream frames from the server, such as `DATA END_STREAM`, up to the end of the first response. */
async function send(method: string, path: string, bytes: number) {
  const frames: string[] = []
  const socket = connect(Number(port), hostname)
  const carrier = new Duplex({
    read: () => void socket.resume(),
    write: (chunk, _encoding, done) => void socket.write(chunk, done),
  })
  let left = Buffer.alloc(0)
  socket.on('data', (chunk) => {
    left = Buffer.concat([left, chunk])
    while (left.length >= 9 && left.length >= 9 + left.readUIntBE(0, 3)) {
      const [length, type, flags] = [left.readUIntBE(0, 3), left[3]!, left[4]!]
      const name = { 0: 'DATA', 1: 'HEADERS', 3: 'RST_STREAM' }[type]
      if (name) frames.push(type < 2 && (flags & 1) === 1 ? `${name} END_STREAM` : name)
      left = left.subarray(9 + length)
    }
    carrier.push(chunk)
  })
  socket.on('error', () => {})
  const session = http2.connect(registry.url, { createConnection: () => carrier })
  session.on('error', () => {})
  try {
    const stream = session.request({ ':method': method, ':path': path, 'content-length': bytes })
    let status = 0
    let body = ''
    stream.on('response', (headers) => {
      status = Number(headers[':status'])
    })
    stream.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    const closed = new Promise((resolve) => stream.once('close', resolve))
    stream.on('error', () => {})
    stream.end(Buffer.alloc(bytes))
    await closed
    return { status, body, frames }
  } finally {
    session.destroy()
    socket.destroy()
  }
}

const requests: [method: string, path: string][] = [
  ['POST', '/v2/acme/app/blobs/uploads/'],
  ['PUT', '/v2/acme/app/manifests/1.0'],
  ['POST', '/registry/v2/repos/none'],
  ['POST', '/scim/v2/Users'],
]

for (const [method, path] of requests) {
  test(`${method} ${path} with 6 MB and no token gets its whole response before any connection reset`, async () => {
    const { status, body, frames } = await send(method, path, 6 * 1024 * 1024)
    assert.equal(status, 401)
    assert.doesNotThrow(() => JSON.parse(body))
    const [end, reset] = [frames.indexOf('DATA END_STREAM'), frames.indexOf('RST_STREAM')]
    assert.ok(end >= 0, frames.join())
    assert.ok(reset < 0 || end < reset, frames.join())
  })
}
