import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { createLogger } from '#lib/log.ts'
import { formatFor, textLine } from '#lib/terminal/log-text.ts'

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

test('holds lines back until it is released, or until a warning', async () => {
  const written = async (last: 'release' | 'warn') => {
    const out = new PassThrough()
    const log = createLogger(out, 'info', { isHeld: true })
    log.with({ part: 'a' }).info('first')
    await new Promise(setImmediate)
    assert.equal(out.read(), null)
    if (last === 'release') log.with({ part: 'b' }).release()
    else log.warn('second')
    const lines = String(out.read()).trimEnd().split('\n')
    log.info('third')
    await new Promise(setImmediate)
    assert.match(String(out.read()), /third/)
    return lines.map((line) => (JSON.parse(line) as { message: string }).message)
  }
  assert.deepEqual(await written('release'), ['first'])
  assert.deepEqual(await written('warn'), ['first', 'second'])
})

test('writes lines for a terminal without control characters', () => {
  const out = new PassThrough()
  const log = createLogger(out, 'info', { format: textLine })
  log.info('serving', {
    url: 'http://127.0.0.1:8080',
    count: 2,
    name: 'a "b"\u001b[31m\u202e\u{e0001}',
    gone: undefined,
  })
  log.error('failed', { error: new Error('no space\u009b') })
  const text = stripVTControlCharacters(String(out.read()))
  const [first, second, ...stack] = text.trimEnd().split('\n')
  assert.match(
    first!,
    /^\d\d:\d\d:\d\d info {2}serving url=http:\/\/127\.0\.0\.1:8080 count=2 name="a \\"b\\"\\u001b\[31m\\u202e\\udb40\\udc01"$/,
  )
  assert.match(second!, /^\d\d:\d\d:\d\d error failed error="no space\\u009b"$/)
  assert.ok(stack.length > 0 && stack.every((line) => /^ {2}at /.test(line)), stack.join('\n'))
})

test('only a terminal that is not stored counts as read by a person', () => {
  assert.equal(formatFor({ isTTY: false }), undefined)
  assert.equal(formatFor({}), undefined)
  const { container } = process.env
  process.env.container = 'oci'
  assert.equal(formatFor({ isTTY: true }), undefined)
  delete process.env.container
  assert.equal(formatFor({ isTTY: true }), textLine)
  if (container !== undefined) process.env.container = container
})
