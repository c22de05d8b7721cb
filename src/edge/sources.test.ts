import assert from 'node:assert/strict'
import { test } from 'node:test'
import { trustedProxies } from '#lib/net/source-address.ts'
import { captureLog } from '../../test/support/log.ts'
import { createSources } from './sources.ts'

function sourcesBehind(...proxies: string[]) {
  const { log, lines } = captureLog()
  const logged = () => {
    log.flush()
    return lines.map(({ level, remoteAddress }) => [level, remoteAddress])
  }
  return { sourceOf: createSources(trustedProxies(proxies), log), logged }
}

test('reports a proxy that is missing in the settings once, and does not trust it', () => {
  const { sourceOf, logged } = sourcesBehind('192.0.2.1')
  for (const peer of ['10.1.2.3', '::ffff:127.0.0.1', '::1']) {
    assert.equal(sourceOf(peer, '198.51.100.7'), peer.replace('::ffff:', ''))
  }
  assert.deepEqual(logged(), [['warn', '10.1.2.3']])
})

test('reports nothing for a trusted proxy, an internet client, or a request without forwarded headers', () => {
  const { sourceOf, logged } = sourcesBehind('10.0.0.0/8')
  assert.equal(sourceOf('10.1.2.3', '198.51.100.7'), '198.51.100.7')
  assert.equal(sourceOf('8.8.8.8', '198.51.100.7'), '8.8.8.8')
  assert.equal(sourceOf('127.0.0.1', undefined), '127.0.0.1')
  assert.deepEqual(logged(), [])
})
