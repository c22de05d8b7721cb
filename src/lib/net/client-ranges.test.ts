import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientRanges } from './client-ranges.ts'

test('identifies clients by address, and never admits an excluded address', () => {
  const cases: [entries: string[], address: string, has: boolean][] = [
    [['off'], '192.0.2.1', false],
    [[], '192.0.2.1', false],
    [['on'], '192.0.2.1', true],
    [['on', '!192.0.2.0/24'], '192.0.2.1', false],
    [['on', '!192.0.2.0/24'], '::ffff:192.0.2.1', false],
    [['on', '!192.0.2.0/24'], '198.51.100.1', true],
    [['192.0.2.0/24'], '192.0.2.1', true],
    [['192.0.2.0/24'], '198.51.100.1', false],
    [['192.0.2.0/24', '!192.0.2.7'], '192.0.2.7', false],
    [['2001:db8::/32'], '2001:db8::1', true],
  ]
  for (const [entries, address, has] of cases)
    assert.equal(clientRanges(entries).has(address), has, `${entries} ${address}`)
})
