// Absolute request targets, as clients send them to proxies (RFC 9112, 3.2.2).
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { startRegistry } from '../support/registry.ts'

const registry = await startRegistry()
after(() => registry[Symbol.asyncDispose]())
const { host, hostname, port } = new URL(registry.url)

async function send(lines: readonly string[]): Promise<string> {
  const socket = connect(Number(port), hostname)
  socket.write(`${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`)
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

const statusOf = (text: string): number => Number(text.split(' ')[1])

test('serves the path in an absolute request target', async () => {
  const token = await registry.tokenFor(registry.puller.uid, { audience: host })
  const authorization = `Authorization: Bearer ${token}`
  const expected: [target: string, status: number][] = [
    [`http://${host}/v2/`, 200],
    [`HTTP://${host}/v2/acme/app/tags/list?n=1`, 404],
    [`http://${host}/healthz`, 200],
    [`http://${host}?x=/v2/`, 200],
    ['/v2/', 200],
  ]
  for (const [target, status] of expected) {
    const text = await send([`GET ${target} HTTP/1.1`, `Host: ${host}`, authorization])
    const same = new URL(target, registry.url)
    const direct = await send([`GET ${same.pathname}${same.search} HTTP/1.1`, `Host: ${host}`, authorization])
    assert.deepEqual([statusOf(text), statusOf(direct)], [status, status], text)
  }
})

test('the challenge for an absolute target names its host', async () => {
  const text = await send([`GET http://${host}/v2/ HTTP/1.1`, `Host: ${host}`])
  assert.equal(statusOf(text), 401)
  assert.match(text, new RegExp(`realm="http://${host.replaceAll('.', '\\.')}/token"`))
})

test('an absolute target requires the same host in the Host header, and two Host headers are refused', async () => {
  const bad = [
    [`GET http://other.example/v2/ HTTP/1.1`, `Host: ${host}`],
    [`GET http://${host}/v2/ HTTP/1.1`],
    [`GET http://${host}/v2/ HTTP/1.1`, `Host: ${host}`, `Host: ${host}`],
    ['GET /v2/ HTTP/1.1', `Host: ${host}`, `Host: ${host}`],
  ]
  for (const lines of bad) assert.equal(statusOf(await send(lines)), 400, lines.join(', '))
})
