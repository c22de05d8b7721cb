import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHosts } from './hosts.ts'

test('accepts a subdomain only with the default port of its scheme', () => {
  const hosts = createHosts('https://example.com', ['mirror.test:443', 'http://plain.test'])
  const find = (host: string, forwarded: { host?: string; proto?: string } = {}) => {
    const headers = { host, forwardedHost: forwarded.host, forwardedProto: forwarded.proto }
    const { origin, subdomain } = hosts.find(headers) ?? {}
    return [origin, subdomain]
  }
  const team = ['https://team.example.com', 'team']
  assert.deepEqual(find('team.example.com'), team)
  assert.deepEqual(find('team.example.com:443'), team)
  assert.deepEqual(find('127.0.0.1:8080', { host: 'team.example.com:443', proto: 'https' }), team)
  assert.deepEqual(find('a.mirror.test'), ['https://a.mirror.test', 'a'])
  assert.deepEqual(find('a.mirror.test:443'), ['https://a.mirror.test', 'a'])
  assert.deepEqual(find('a.plain.test:80'), ['http://a.plain.test', 'a'])
  assert.deepEqual(find('a.plain.test:443', { proto: 'https' }), ['https://a.plain.test', 'a'])
  for (const other of ['team.example.com:80', 'team.example.com:8443', 'a.plain.test:443', 'xexample.com:443']) {
    assert.deepEqual(find(other), [undefined, undefined], other)
  }
  assert.deepEqual(find('example.com:443'), ['https://example.com', ''])
})
