// The error is raised by PostgreSQL itself, as after a write on a full disk.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { raw } from '../sql.ts'
import { isDiskFull, isUnavailable, StoppedByFullDisk, whyUnavailable } from '../unavailable.ts'
import { createFullDisk } from './full-disk.ts'
import { openPostgres } from './postgres.ts'
import type { Sends } from './send.ts'

const database = process.env.PINFOLD_TEST_DATABASE ?? ''
const raising = (code: string) => raw(`DO $$ BEGIN RAISE 'could not write' USING ERRCODE = '${code}'; END $$`)

test('names the full disk while a server that stopped because of it does not answer', async () => {
  const fullDisk = createFullDisk({} as Sends, 300)
  const failed = (error: Error) => fullDisk.watch(Promise.reject(error)).catch((thrown: unknown) => thrown)
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const full = (severity: string) => Object.assign(new Error('could not write to file'), { code: '53100', severity })
  await failed(full('ERROR'))
  assert.equal(await failed(refused), refused)
  const panic = full('PANIC')
  assert.equal(await failed(panic), panic)
  const error = await failed(refused)
  assert.ok(error instanceof StoppedByFullDisk && error.cause === refused)
  assert.deepEqual([isUnavailable(error), isDiskFull(error)], [true, false])
  assert.match(whyUnavailable(error), /has stopped, because its disk is full; retry after the operator has freed space/)
  const bug = new TypeError('a bug')
  assert.equal(await failed(bug), bug)
  await fullDisk.explain(Promise.resolve())
  assert.equal(await failed(refused), refused)
})

suite('full disk of PostgreSQL', { skip: database === '' && 'PINFOLD_TEST_DATABASE is not set' }, () => {
  test('fails health checks after a write on a full disk, until a write succeeds again', async () => {
    const db = openPostgres(database, { times: { fullMs: 2000 } })
    try {
      await db.ping()
      const full = await db.tx((tx) => tx.run(raising('53100'))).catch((error: unknown) => error)
      assert.deepEqual([isUnavailable(full), isDiskFull(full)], [true, true])
      assert.match(whyUnavailable(full), /the disk of the database is full/)
      await assert.rejects(db.ping(), (error) => isDiskFull(error))
      assert.deepEqual(await db.all(raw('SELECT 1 AS one')), [{ one: 1 }])
      await sleep(2050)
      await db.ping()
      assert.deepEqual(await db.all(raw("SELECT relname FROM pg_class WHERE relname = 'pinfold_room'")), [])
    } finally {
      await db.close()
    }
  })

  test('counts missing memory and disk errors as unavailable, and names missing memory', async () => {
    const db = openPostgres(database)
    try {
      for (const code of ['53200', '53000', '58030']) {
        const error = await db.tx((tx) => tx.run(raising(code))).catch((thrown: unknown) => thrown)
        assert.deepEqual([isUnavailable(error), isDiskFull(error)], [true, false], code)
        const expected =
          code === '53200' ? /no memory left; retry later$/ : /^the database is unavailable; retry later$/
        assert.match(whyUnavailable(error), expected)
      }
      await db.ping()
      const other = await db.tx((tx) => tx.run(raising('22012'))).catch((thrown: unknown) => thrown)
      assert.equal(isUnavailable(other), false)
    } finally {
      await db.close()
    }
  })
})
