// Official clients of the Model Context Protocol with a real server. They call every read-only tool. With `--npm FOLDER`, the
// folder must have the packages of mcp/package.json.
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type ToolTexts, toolName } from '#api/mcp/tools.ts'
import { buildEndpoints } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { shortName, withReads } from '../reference/run-calls.ts'

const { values } = parseArgs({ options: { npm: { type: 'string' } } })
if (!values.npm) throw new Error('--npm names the folder with node_modules')
const work = mkdtempSync(join(tmpdir(), 'pinfold-mcp-'))
const texts = readFileSync(join(import.meta.dirname, '../../gen/mcp-tools.json'), 'utf8')
const { tools } = JSON.parse(texts) as ToolTexts
const names = new Map(buildEndpoints(services).map(({ method, desc }) => [shortName(method.fullName), toolName(desc)]))
const isReading = (method: string): boolean =>
  /\.v2\./.test(method) && tools[names.get(method)!]?.annotations.readOnlyHint === true

try {
  await withReads(isReading, async ({ pinfold }, calls) => {
    const file = join(work, 'calls.json')
    writeFileSync(file, JSON.stringify(calls.map(({ name, args }) => ({ name: names.get(name), arguments: args }))))
    cpSync(join(import.meta.dirname, 'mcp'), work, { recursive: true })
    symlinkSync(resolve(values.npm!, 'node_modules'), join(work, 'node_modules'))
    const env = { ...process.env, URL: pinfold.url, TOKEN: pinfold.operator.token, CALLS: file }
    const out = await new Promise<string>((done) => {
      execFile(process.execPath, ['client.ts'], { cwd: work, env }, (error, stdout, stderr) => {
        done(`${stdout}${error ? `${stderr}\nFAIL` : ''}`)
      })
    })
    console.log(out.trimEnd())
    const passed = (out.match(/^ok /gm) ?? []).length
    // Each of the three clients calls all read-only tools, and makes four more calls.
    const isWhole = passed === 3 * (calls.length + 4) + 1 && calls.length > 30
    console.log(`${passed} passed, ${isWhole ? 0 : 1} failed`)
    process.exitCode = isWhole ? 0 : 1
  })
} finally {
  rmSync(work, { recursive: true, force: true })
}
