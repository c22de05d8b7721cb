// Generated clients of the OpenAPI documents. Each must compile, and calls the real server. Needs openapi-python-client and
// oapi-codegen on the PATH, Go, and with `--npm FOLDER` a folder with the packages of openapi/typescript/package.json.
import { execFile } from 'node:child_process'
import { cpSync, globSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { startPinfold } from '../support/pinfold.ts'

const { values } = parseArgs({ options: { npm: { type: 'string' } } })
if (!values.npm) throw new Error('--npm names the folder with node_modules')
const modules = resolve(values.npm, 'node_modules')
const programs = join(import.meta.dirname, 'openapi')
const work = mkdtempSync(join(tmpdir(), 'pinfold-openapi-'))
/** Number of steps of each program, so that a program that ends early fails. */
const calls = 15
let passed = 0
let failed = 0

type Done = { code: number; out: string }

function sh(folder: string, env: Record<string, string>, [command, ...args]: readonly string[]): Promise<Done> {
  const options = { cwd: folder, env: { ...process.env, ...env }, maxBuffer: 64 << 20 }
  return new Promise((done) => {
    execFile(command!, args, options, (error, stdout, stderr) => {
      done({ code: error ? 1 : 0, out: `${stdout}${stderr}${error && !stderr ? error.message : ''}` })
    })
  })
}

type Generator = {
  name: string
  folder: string
  /** Generates a client from a document, compiles it, and runs the program that uses it. */
  generate(document: string): string[]
  compile: string[]
  build: string[][]
  call: string[]
}

const tsc = (...args: string[]) => [join(modules, '.bin/tsc'), '--strict', ...args]
const generators: readonly Generator[] = [
  {
    name: 'openapi-typescript',
    folder: 'typescript',
    generate: (document) => [join(modules, '.bin/openapi-typescript'), document, '-o', 'schema.d.ts'],
    compile: tsc('--noEmit', 'schema.d.ts'),
    build: [tsc('-p', '.', '--outDir', 'built')],
    call: [process.execPath, 'built/client.js'],
  },
  {
    name: 'openapi-python-client',
    folder: 'python',
    generate: (document) => [
      ...['openapi-python-client', 'generate', '--url', document, '--output-path', 'pinfold'],
      ...['--meta', 'none', '--fail-on-warning'],
    ],
    compile: ['python3', '-m', 'compileall', '-q', 'pinfold'],
    build: [],
    call: ['python3', 'client.py'],
  },
  {
    name: 'oapi-codegen',
    folder: 'go',
    generate: (document) => [
      ...['oapi-codegen', '-generate', 'types,client', '-package', 'pinfold', '-o', 'pinfold/client.go', document],
    ],
    compile: ['go', 'build', './pinfold'],
    build: [['go', 'build', '-o', 'built', '.']],
    call: ['./built'],
  },
]

async function step(name: string, run: Promise<Done>, isRight = (_: Done) => true): Promise<boolean> {
  const done = await run
  const ok = done.code === 0 && isRight(done)
  if (ok) passed++
  else failed++
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}${ok ? '' : `\n${done.out.slice(-6000)}`}`)
  return ok
}

/** The programs call version 2. For version 1, the client only has to compile. */
async function tryGenerator(generator: Generator, url: string, document: string, token: string): Promise<void> {
  const { name, generate, compile, build, call } = generator
  const folder = join(work, document, generator.folder)
  mkdirSync(folder, { recursive: true })
  cpSync(join(programs, generator.folder), folder, { recursive: true })
  mkdirSync(join(folder, generator.folder === 'go' ? 'pinfold' : '.'), { recursive: true })
  if (generator.folder === 'typescript') symlinkSync(modules, join(folder, 'node_modules'))
  const env = { URL: url, TOKEN: token }
  if (!(await step(`${name} makes a client of ${document}`, sh(folder, env, generate(`${url}/${document}`))))) return
  if (!(await step(`${name}: the client of ${document} compiles`, sh(folder, env, compile)))) return
  if (document !== 'openapi.json') return
  for (const command of build)
    if (!(await step(`${name}: a program with it compiles`, sh(folder, env, command)))) return
  const isWhole = ({ out }: Done) => (out.match(/^ok /gm) ?? []).length === calls
  await step(`${name}: the program makes ${calls} calls`, sh(folder, env, call), isWhole)
}

try {
  await using pinfold = await startPinfold()
  const documents = globSync('openapi*.json', { cwd: join(import.meta.dirname, '../../gen') }).sort()
  const { token } = pinfold.operator
  for (const document of documents)
    for (const generator of generators) await tryGenerator(generator, pinfold.url, document, token!)
} finally {
  rmSync(work, { recursive: true, force: true })
}
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
