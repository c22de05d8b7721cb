// Random calls through version 1 and version 2 in turns, which must have the same effects. `test/fuzz/versions.ts` makes more of
// them.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startPinfold } from '../support/pinfold.ts'
import { compareVersions } from '../support/versions.ts'

const pinfold = await startPinfold()
after(() => pinfold[Symbol.asyncDispose]())

test('both versions return the same data, whichever version wrote it', async () => {
  const changed = await compareVersions(pinfold, { seed: 20_261_122, calls: 400, lookEvery: 50 })
  assert.ok(changed > 150, `${changed} calls have changed something`)
})
