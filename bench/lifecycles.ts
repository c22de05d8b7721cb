// Time of `pinfold lifecycles import` for all products of endoflife.date: `bin/pinfold-node bench/lifecycles.ts PRODUCTS`.
// PRODUCTS is a file with the response of its /api/v1/products/full. Uses a data folder without a running server. Exits with 1 if
// the import takes more than ten seconds. With PINFOLD_TEST_DATABASE it measures PostgreSQL.
import { parseArgs } from 'node:util'
import { createStorage, runProcess } from '../test/support/process.ts'

const boundMs = 10_000
const [file] = parseArgs({ allowPositionals: true }).positionals
if (file === undefined) throw new Error('the file is required')

await using storage = await createStorage()
const made = await runProcess(['migrate', ...storage.args], { env: storage.env })
if (made.code !== 0) throw new Error(made.stderr)
for (const what of ['all products', 'all of them again']) {
  const began = performance.now()
  const { code, stdout, stderr } = await runProcess(['lifecycles', 'import', file, ...storage.args], {
    env: storage.env,
  })
  const ms = Math.round(performance.now() - began)
  if (code !== 0) throw new Error(stderr)
  console.log(`${what}: ${ms} ms; ${stdout.trim().replaceAll('\n', '; ')}`)
  if (ms > boundMs) {
    console.log(`MISSED, ${what}: more than ${boundMs} ms`)
    process.exitCode = 1
  }
}
