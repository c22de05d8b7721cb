import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createThreadTime } from '#lib/budgets/thread-time.ts'
import type { HttpArrival } from './entry-points.ts'
import { readBody } from './read-body.ts'

const chunk = Buffer.alloc(32 * 1024, 'x')
const limit = 1024 * 1024

/** A request whose body arrives when the test sends it. */
function arrive(chargeTurn = () => {}, holdBody: (chunk: Buffer) => void = () => {}) {
  const req = Object.assign(new EventEmitter(), { headers: {}, destroyed: false })
  const body = readBody({ req, chargeTurn, holdBody, releaseBody() {} } as unknown as HttpArrival, limit)
  return { body, come: () => void req.emit('data', chunk), end: () => void req.emit('end') }
}

test('joins large bodies that end in one turn of the event loop in several turns', async (t) => {
  const { mock } = t.mock.method(Buffer, 'concat')
  const arrivals = Array.from({ length: 16 }, () => arrive())
  for (const { come, end } of arrivals) {
    come()
    come()
    end()
  }
  for (let step = 0; step < 10; step++) await undefined
  assert.equal(mock.callCount(), 0)
  const bodies = await Promise.all(arrivals.map(({ body }) => body))
  assert.equal(mock.callCount(), 16)
  assert.ok(bodies.every(({ length }) => length === 2 * chunk.length))
})

test('charges the time for reading a body to its request', async () => {
  let now = 0
  const time = createThreadTime(() => now)
  const charged = { pull: 0, upload: 0 }
  const charge = (name: keyof typeof charged) => ({
    charge(ms: number) {
      charged[name] += ms
    },
  })
  const { come, end, body } = arrive(() => time.run(charge('upload'), () => {}))
  time.run(charge('pull'), () => {})
  now += 1
  come()
  now += 10
  end()
  await turn()
  time.close()
  await body
  assert.deepEqual(charged, { pull: 1, upload: 10 })
})

test('rejects a body that does not fit into memory, and drops the rest of it', async () => {
  const held: number[] = []
  const { come, end, body } = arrive(undefined, ({ length }) => {
    if (held.length === 2) throw new Error('the memory is full')
    held.push(length)
  })
  for (let i = 0; i < 5; i++) come()
  end()
  await assert.rejects(body, /the memory is full/)
  assert.deepEqual(held, [chunk.length, chunk.length])
})
