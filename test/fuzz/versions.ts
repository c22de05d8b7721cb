// Sends random calls alternately through both versions of the API, and compares their results after every 200 calls.
//
//   bin/pinfold-node test/fuzz/versions.ts --calls 20000 --seed 1
import { parseArgs } from 'node:util'
import { startPinfold } from '../support/pinfold.ts'
import { compareVersions } from '../support/versions.ts'

const { values } = parseArgs({ options: { calls: { type: 'string' }, seed: { type: 'string' } } })
const calls = Number(values.calls ?? 20_000)
const seed = Number(values.seed ?? Date.now() % 1_000_000)
process.stdout.write(`${calls} calls with seed ${seed}\n`)
await using pinfold = await startPinfold()
const started = performance.now()
const changed = await compareVersions(pinfold, { seed, calls, lookEvery: 200 })
process.stdout.write(`${changed} have changed something, in ${Math.round((performance.now() - started) / 1000)} s\n`)
