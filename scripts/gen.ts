// `npm run gen [FOLDER]`: writes all generated files. With a folder, writes them there, so that a test can compare them.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { chartSchema } from './chart-schema.ts'
import { consoleFiles } from './console.ts'
import { configPage, errorsPage } from './docs.ts'
import { eventNames } from './event-names.ts'
import { must, root } from './run.ts'

const out = resolve(process.argv[2] ?? root)

function write(file: string, text: string | Buffer): void {
  mkdirSync(dirname(join(out, file)), { recursive: true })
  writeFileSync(join(out, file), text)
}

must('buf', ['generate', '-o', out])
mkdirSync(join(out, 'build'), { recursive: true })
const contract = join(out, 'build/contract.binpb')
must('buf', ['build', '-o', contract])
write('gen/event-names.ts', eventNames(contract))
// These modules load the server, which may import types that were generated above. So they are imported only now.
const { mcpTools } = await import('./mcp-tools.ts')
const { openApi } = await import('./openapi.ts')
const { cliPage } = await import('./cli-reference.ts')
const { referencePages } = await import('./reference.ts')
write('gen/openapi.json', `${JSON.stringify(openApi(contract, 'v2'), null, 1)}\n`)
write('gen/openapi-v1.json', `${JSON.stringify(openApi(contract, 'v1'), null, 1)}\n`)
write('gen/mcp-tools.json', `${JSON.stringify(mcpTools(contract), null, 1)}\n`)
rmSync(join(out, 'gen/console'), { recursive: true, force: true })
for (const [name, text] of Object.entries(await consoleFiles(root))) write(join('gen/console', name), text)
write('docs/config.md', configPage())
write('docs/errors.md', errorsPage())
write('docs/reference/cli.md', await cliPage())
write('examples/chart/values.schema.json', chartSchema())
rmSync(join(out, 'docs/api'), { recursive: true, force: true })
for (const [name, text] of Object.entries(referencePages(contract))) write(join('docs/api', name), text)
