// Cost of requests: the largest input of every method and every entry point, against the CPU time of one turn of the event
// loop and the growth of the heap. This is the short version; test/fuzz/request-cost.ts sends all inputs.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { runGuard } from '../support/cost/guard.ts'
import { allInputs, missingTargets, someInputs, unreached } from '../support/cost/plan.ts'
import { startMeasured } from '../support/cost/process.ts'
import { openWire } from '../support/cost/wire.ts'
import { onPostgres } from '../support/pinfold.ts'

// The measurement does not include the database.
const skip = onPostgres
const server = skip ? undefined : await startMeasured()
const wire = openWire(server?.facts.port ?? 0)
const inputs = server ? allInputs(server.facts, wire) : []
after(async () => {
  wire.close()
  await server?.[Symbol.asyncDispose]()
})

test('the test has an input for each method and each entry point', { skip }, () => {
  assert.deepEqual(missingTargets(server!.facts, inputs), [])
})

test('the largest input of each request neither blocks the event loop for long nor needs much memory', {
  skip,
}, async (t) => {
  const { over, stale, unsent, unhandled, failed, closed, statuses } = await runGuard(server!, someInputs(inputs))
  assert.deepEqual(over, [])
  // The test sends only a few inputs, so other inputs of the same method could still exceed a limit.
  for (const entry of stale) t.diagnostic(`no input of known.ts exceeds a limit: ${entry}`)
  for (const [status, count] of [...statuses].sort()) t.diagnostic(`${status}: ${count} inputs`)
  assert.deepEqual(unsent, [])
  assert.deepEqual(unhandled, [])
  assert.deepEqual(failed, [])
  assert.deepEqual(closed, [])
})

test('the inputs reach each method and each entry point', { skip }, async () => {
  assert.deepEqual(unreached(server!.facts, await server!.reached()), [])
})
