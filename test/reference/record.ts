// `bin/pinfold-node test/reference/record.ts` makes the calls of the reference and writes down what they answer, for the
// pages in docs/api, which `npm run gen` makes.
import { writeFileSync } from 'node:fs'
import { runCalls } from './run-calls.ts'

const examples = await runCalls()
const file = new URL('../data/examples.json', import.meta.url)
writeFileSync(file, `${JSON.stringify(examples, null, 1)}\n`)
console.log(`${Object.keys(examples).length} examples`)
