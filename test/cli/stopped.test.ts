// Commands without a running server.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { requireStopped } from '../../src/cli/server/stopped.ts'
import { onPostgres, startPinfold } from '../support/pinfold.ts'

const skip = onPostgres && 'only SQLite is told where'

test('large operations such as completing a restore can use temporary files', { skip }, async () => {
  await using pinfold = await startPinfold({ jobs: [] })
  const data = mkdtempSync(join(tmpdir(), 'pinfold-stopped-'))
  const stopped = await requireStopped(pinfold.app.db, { ...pinfold.app.config, data })
  const txs = mock.method(pinfold.app.db, 'tx')
  await stopped.tx(async () => {})
  assert.deepEqual(
    txs.mock.calls.map(({ arguments: [, options] }) => options?.aside),
    ['disk'],
  )
  stopped.release()
  rmSync(data, { recursive: true })
})
