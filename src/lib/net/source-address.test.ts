import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sourceAddress, trustedProxies } from './source-address.ts'

const proxies = trustedProxies(['10.0.0.0/8', '192.0.2.7', '2001:db8::/32'])

test('ignores the forwarded header without a trusted proxy', () => {
  assert.equal(sourceAddress('203.0.113.9', '198.51.100.1', proxies), '203.0.113.9')
  assert.equal(sourceAddress('203.0.113.9', '198.51.100.1', trustedProxies([])), '203.0.113.9')
})

test('a trusted proxy names the client, also through other trusted proxies', () => {
  assert.equal(sourceAddress('10.1.2.3', '198.51.100.1', proxies), '198.51.100.1')
  assert.equal(sourceAddress('10.1.2.3', '198.51.100.1, 192.0.2.7', proxies), '198.51.100.1')
  assert.equal(sourceAddress('::ffff:10.1.2.3', '2001:db8::1, 10.9.9.9', proxies), '2001:db8::1')
})

test('ignores addresses that the client wrote itself, to the left of the first untrusted one', () => {
  assert.equal(sourceAddress('10.1.2.3', '1.2.3.4, 198.51.100.1', proxies), '198.51.100.1')
  assert.equal(sourceAddress('10.1.2.3', '1.2.3.4, unknown, 10.4.4.4', proxies), '10.4.4.4')
})

test('removes the port from an address', () => {
  assert.equal(sourceAddress('203.0.113.9:4711', undefined, proxies), '203.0.113.9')
  assert.equal(sourceAddress('[2001:db9::1]:4711', undefined, proxies), '2001:db9::1')
})
