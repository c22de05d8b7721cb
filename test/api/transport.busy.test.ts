// Overload is reported differently from a failure, at each entry point.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { referenceEntryPoint } from '#api/reference/reference.ts'
import { startServer } from '#api/server.ts'
import type { Edge } from '#edge/arrival.ts'
import type { HttpArrival } from '#edge/entry-points.ts'
import { createFailureLog } from '#lib/batches/failure-log.ts'
import { busy } from '#lib/errors.ts'
import { captureLog } from '../support/log.ts'
import { clientOf, startPinfold } from '../support/pinfold.ts'

const tooMuch = busy('all connections to the database are in use', new Error('timeout exceeded'))

test('an overloaded server answers with a retry time, and logs a warning', async () => {
  await using pinfold = await startPinfold({ transparencyLog: 'public' })
  const { uid } = await pinfold.seed.group('', { name: 'acme' })
  const fail = () => Promise.reject(tooMuch)
  const logged = captureLog()
  const { app } = pinfold
  const db = { ...app.db, all: fail, get: fail, tx: fail }
  const limits = Object.assign(Object.create(app.limits) as typeof app.limits, {
    check() {
      throw tooMuch
    },
  })
  const parts = { ...app, log: logged.log, db }
  const [server, crowded] = [await startServer(parts), await startServer({ ...parts, limits })]
  await using _closing = {
    [Symbol.asyncDispose]: async () => void (await Promise.all([server.close(), crowded.close()])),
  }
  const doors: readonly [url: string, path: string, message: string][] = [
    [
      server.url,
      '/oauth?exit=redirect&redirect=http://localhost:4711/callback&idp_id=acme.example',
      'page request failed',
    ],
    [server.url, `/ledger/${uid}/checkpoint`, 'ledger request failed'],
    [crowded.url, '/openapi.json', 'document request failed'],
  ]
  for (const [url, path, message] of doors) {
    const { status, headers } = await clientOf(url, undefined).get(path)
    assert.deepEqual([status, headers.get('retry-after')], [503, '1'], path)
    const { level } = await logged.until((line) => line.message === message)
    assert.equal(level, 'warn', path)
  }
})

test('the reference server, which reads no database, refuses in the same way', async () => {
  const logged: string[] = []
  const log = {
    warn: (text: string) => logged.push(`warn ${text}`),
    error: (text: string) => logged.push(`error ${text}`),
  }
  const failures = createFailureLog(log, () => false)
  const door = referenceEntryPoint({ app: { config: { requestTimeoutMs: 1000 }, log, failures } } as unknown as Edge)
  const answered: unknown[] = []
  const res = { writeHead: (status: number) => answered.push(status), end() {}, setHeader() {} }
  await door.refuse(
    { requestId: 'x', req: { method: 'GET' }, res, settle: () => true } as unknown as HttpArrival,
    tooMuch,
  )
  await door.refuse(
    { requestId: 'y', req: { method: 'GET' }, res, settle: () => true } as unknown as HttpArrival,
    new Error('a bug'),
  )
  assert.deepEqual(answered, [503, 500])
  assert.deepEqual(logged, ['warn page request failed', 'error page request failed'])
})
