// Measures the cost of every request, by hand: `bin/pinfold-node test/fuzz/request-cost.ts`, with `--only PATTERN` for some of
// the inputs. Sends every input of the generator, about 40,000, which takes hours. With a pattern such as `manifest` or
// `CreateRole` it takes minutes. Prints the requests that exceed a limit. Exits with 1 if test/support/cost/known.ts does not
// list one of them.
import { parseArgs } from 'node:util'
import { limits, runGuard, titleOf } from '../support/cost/guard.ts'
import { allInputs, missingTargets } from '../support/cost/plan.ts'
import { startMeasured } from '../support/cost/process.ts'
import { openWire } from '../support/cost/wire.ts'

const { values } = parseArgs({ options: { only: { type: 'string', default: '' } } })
const pattern = new RegExp(values.only)

await using server = await startMeasured()
const wire = openWire(server.facts.port)
const all = allInputs(server.facts, wire)
const missing = missingTargets(server.facts, all)
const inputs = all.filter((input) => pattern.test(titleOf(input)))
console.log(`${inputs.length} of ${all.length} inputs; a finding takes more than ${limits}`)
const { over, stale, unsent, unhandled, failed, closed, skipped, statuses } = await runGuard(
  server,
  inputs,
  console.log,
)
wire.close()
for (const target of missing) console.log(`no input: ${target}`)
for (const entry of stale) console.log(`no longer above a limit: ${entry}`)
for (const title of unsent) console.log(`answered with 429: ${title}`)
for (const kind of closed) console.log(`every request was refused: ${kind}`)
for (const [status, count] of [...statuses].sort()) console.log(`${status}: ${count} inputs`)
console.log(`${skipped} inputs not sent, because the entry point does not serve their HTTP method`)
console.log(`${inputs.length} inputs, ${over.length} above a limit, ${unhandled.length} refused before their handler`)
console.log(`${failed.length} valid inputs were refused`)
const problems = [over, missing, stale, unsent, unhandled, failed, closed]
process.exitCode = problems.some(({ length }) => length > 0) ? 1 : 0
