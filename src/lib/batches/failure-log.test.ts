import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unavailable } from '../errors.ts'
import { createFailureLog } from './failure-log.ts'

type Line = { level: string; message: string; fields: Record<string, unknown> }

function watched() {
  const lines: Line[] = []
  const waits: (() => void)[] = []
  const at = (level: string) => (message: string, fields?: Record<string, unknown>) =>
    void lines.push({ level, message, fields: fields ?? {} })
  const wait = (call: () => void) => {
    waits.push(call)
    return setTimeout(() => {}, 0)
  }
  const isAway = (error: unknown) => error instanceof Error && error.message === 'away'
  const log = { warn: at('warn'), error: at('error') }
  return { lines, log, minute: () => waits.shift()!(), failures: createFailureLog(log, isAway, wait) }
}

const away = new Error('away')

test('logs the first failed request at once, and the others of a minute in one line with a count', () => {
  const { lines, log, minute, failures } = watched()
  for (let i = 0; i < 3000; i++) failures.request(log, 'request failed', away, { requestId: String(i) })
  const line = (count: number) => ({ level: 'error', message: 'request failed', fields: { count, reason: 'away' } })
  assert.deepEqual(lines.splice(0), [line(1)])
  minute()
  assert.deepEqual(lines.splice(0), [line(2999)])
  minute()
  assert.deepEqual(lines, [], 'nothing has failed in this minute')
  failures.request(log, 'request failed', away, {})
  assert.deepEqual(lines, [line(1)])
})

test('counts each message separately, and logs other failures than outages in full', () => {
  const { lines, log, failures } = watched()
  failures.request(log, 'request failed', away, {})
  failures.request(log, 'registry request failed', away, {})
  const bug = new Error('a bug')
  failures.request(log, 'request failed', bug, { requestId: 'a' })
  failures.request(log, 'request failed', bug, { requestId: 'b' })
  assert.deepEqual(
    lines.map(({ message, fields }) => [message, fields.count ?? fields.requestId, fields.error]),
    [
      ['request failed', 1, undefined],
      ['registry request failed', 1, undefined],
      ['request failed', 'a', bug],
      ['request failed', 'b', bug],
    ],
  )
})

test('logs counted failures when closed, with their first cause', () => {
  const { lines, failures } = watched()
  for (let i = 0; i < 3; i++) failures.repeated('refusals could not be written', unavailable('later', away))
  failures.close()
  assert.deepEqual(
    lines.map(({ fields }) => fields),
    [
      { count: 1, reason: 'away' },
      { count: 2, reason: 'away' },
    ],
  )
})
