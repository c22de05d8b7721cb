import { type Command, outputOption } from '../framework/command.ts'
import { operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { sendRecords } from './import-batches.ts'
import { isJson, readRecords } from './import-files.ts'
import { readLifecycles } from './lifecycle-files.ts'

export const importLifecycles: Command = {
  details: `Reads *.json in the format of endoflife.date: the response of /api/v1/products/full, or of one product. Reads a file, a folder or a
tar archive, compressed with gzip or not. A release can also have "broken": true, if it can no longer be built, and "fips": true.
A second import changes only what has changed, and deletes nothing.
Invalid products are left out and listed; the others are imported, and the exit code is 1.

${operatorDetails}`,
  arguments: [{ name: '<path...>', summary: 'Files, folders or tar archives' }],
  options: [...operatorOptions, outputOption],
  async run(terminal, options) {
    const read = await readRecords(options.path, isJson, readLifecycles)
    const rules = {
      what: 'products',
      path: '/control/v1/lifecycles:import',
      request: (products: readonly object[]) => ({ products }),
      member: 'products',
    }
    return withOperator(terminal, options, (api) => sendRecords(terminal, options, api, rules, read))
  },
}
