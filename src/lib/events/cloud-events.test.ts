import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hostReference } from './cloud-events.ts'

test('a host name is its own URI reference if it parses as one', () => {
  for (const host of [
    'registry.example.com',
    'registry.example.com:5000',
    'localhost:8080',
    '127.0.0.1',
    '3.example',
  ]) {
    assert.equal(hostReference(host), host)
  }
})

test('writes two slashes before a host with a port that would parse as a path, and before an address in brackets', () => {
  for (const host of ['127.0.0.1:8080', '3.example:5000', 'my_registry:5000', '[::1]', '[::1]:8080']) {
    assert.equal(hostReference(host), `//${host}`)
    assert.equal(new URL(hostReference(host), 'http://base.example').host, host)
  }
})
