import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { createLogger } from '#lib/log.ts'

test('an added field is in each later line, also of loggers created before', () => {
  const out = new PassThrough()
  const log = createLogger(out)
  const part = log.with({ caller: 'one' })
  log.error('before')
  log.mark({ node: 'a' })
  part.error('after', { more: 1 })
  log.with({ caller: 'two' }).error('after')
  const lines = String(out.read())
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  assert.deepEqual(
    lines.map(({ node, caller, more }) => [node, caller, more]),
    [
      [undefined, undefined, undefined],
      ['a', 'one', 1],
      ['a', 'two', undefined],
    ],
  )
})

test('shortens long texts in all fields of a line', () => {
  const out = new PassThrough()
  const log = createLogger(out)
  const long = 'x'.repeat(1_000_000)
  log.error('failed', { text: long, list: [long], inner: { text: long }, error: new Error(long, { cause: long }) })
  log.error('failed', { text: long })
  const lines = String(out.read()).trimEnd().split('\n')
  assert.equal(lines.length, 2)
  for (const line of lines) {
    assert.ok(line.length < 100_000, String(line.length))
    assert.match((JSON.parse(line) as { text: string }).text, /^x{8192}…$/)
  }
})
