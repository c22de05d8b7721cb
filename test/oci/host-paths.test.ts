// The setting for hosts that select a view, a folder, or both.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError, readConfig } from '#config.ts'

const read = (value: string) => readConfig({ PINFOLD_HOST_PATHS: value }).hostPaths

test('reads the setting for hosts with their path prefixes', () => {
  assert.deepEqual([...read('')], [])
  assert.deepEqual(
    [...read('{"Slow.Example":"min-7d/acme/hub","hub.example:5000":"acme/hub","then.example":"at-20261101"}')],
    [
      ['slow.example', 'min-7d/acme/hub'],
      ['hub.example:5000', 'acme/hub'],
      ['then.example', 'at-20261101'],
    ],
  )
})

test('does not start with an invalid host, path or view', () => {
  for (const value of [
    'slow.example',
    '[]',
    '{"slow.example":1}',
    '{"https://slow.example":"acme"}',
    '{"slow example":"acme"}',
    '{"slow.example":""}',
    '{"slow.example":"/acme"}',
    '{"slow.example":"Acme"}',
    '{"slow.example":"min-7x/acme"}',
    '{"slow.example":"at-2026/acme"}',
    JSON.stringify(Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`h${i}.example`, 'acme']))),
  ]) {
    assert.throws(() => read(value), ConfigError, value)
  }
})
