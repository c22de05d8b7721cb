// Kills a server repeatedly during concurrent pushes. No acknowledged push may be lost, and no push may be stored incompletely.
// To run it by hand:
//   bin/pinfold-node test/fuzz/pushes.ts --rounds 20 --pushes 200
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one.
import { parseArgs } from 'node:util'
import { createStorage } from '../support/process.ts'
import { killPushes, type PushTally } from '../support/pushes.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '20' }, pushes: { type: 'string', default: '200' } },
})
const line = ({ sent, acknowledged, cut, happened, blobs }: PushTally) =>
  `${sent} sent, ${acknowledged} acknowledged, ${cut} cut off of which ${happened} had happened, ${blobs} blobs`

await using storage = await createStorage()
console.log(storage.database ? 'PostgreSQL' : 'SQLite')
const sum = await killPushes(storage, Number(values.rounds), Number(values.pushes), (round, tally) =>
  console.log(`round ${round}: ${line(tally)}`),
)
console.log(`nothing lost in ${values.rounds} rounds: ${line(sum)}`)
