// Kills a server repeatedly during concurrent writes, and checks that no acknowledged write is lost. To run it by hand:
//   bin/pinfold-node test/fuzz/kill.ts --rounds 20 --writes 1000
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one.
import { parseArgs } from 'node:util'
import { killRounds, type Tally } from '../support/durability.ts'
import { createStorage } from '../support/process.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '20' }, writes: { type: 'string', default: '1000' } },
})
const line = ({ sent, acknowledged, refused, doubtful, happened, resources }: Tally) =>
  `${sent} sent, ${acknowledged} acknowledged, ${refused} refused, ${doubtful} cut off of which ${happened} had happened, ${resources} resources`

await using storage = await createStorage()
console.log(storage.database ? 'PostgreSQL' : 'SQLite')
const sum = await killRounds(storage, Number(values.rounds), Number(values.writes), (round, tally) =>
  console.log(`round ${round}: ${line(tally)}`),
)
console.log(`nothing lost in ${values.rounds} rounds: ${line(sum)}`)
