// Runs the shell blocks of a guide as they are written. `pinfold` runs in the process of the test, and stubs replace programs
// that need a cloud, a container runtime or root.
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { parse } from 'yaml'
import { makeHome } from './fake-sts.ts'
import type { Json } from './pinfold.ts'
import { type Env, project, type Run, run, runProcess } from './process.ts'

/** Stub of a program: gets its arguments and its environment, and returns its output. */
export type Stub = (args: readonly string[], env: Env) => Promise<Partial<Run>> | Partial<Run>
/** A call of a stub. */
export type Call = { program: string; args: readonly string[] }
type Texts = Readonly<Record<string, string>>

export type Guide = ReturnType<typeof readGuide>

/** Parts of a page in docs/guides. */
export function readGuide(name: string) {
  const text = readFileSync(join(project, 'docs/guides', `${name}.md`), 'utf8')
  /** Code blocks in a language, also those in list items. */
  const blocks = (language: string): string[] =>
    [...text.matchAll(/^( *)```(\w*)\n([\s\S]*?)^ *```$/gm)]
      .filter(([, , written]) => written === language)
      .map(([, indent, , block]) => block!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''))
  return {
    text,
    blocks,
    sh: blocks('sh'),
    yaml: (): Json[] => blocks('yaml').map((block) => parse(block)),
    json: (): Json[] => blocks('json').map((block) => JSON.parse(block)),
    /** Code spans in the row of a table whose first cell is `field`. */
    row(field: string): string[] {
      const row = text.split('\n').find((line) => line.startsWith(`| ${field} |`))
      assert.ok(row, `no row ${field}`)
      return [...row.matchAll(/`([^`]+)`/g)].map((match) => match[1]!)
    },
  }
}

const stubScript = (socket: string) => `#!/bin/sh
folder=$(mktemp -d)
basename "$0" > $folder/program
for word; do printf '%s\\0' "$word"; done > $folder/args
env -0 > $folder/env
curl -sS --unix-socket ${socket} --data-binary "$folder" http://stub/ || exit 99
cat $folder/stderr >&2
cat $folder/stdout
code=$(cat $folder/code)
rm -r $folder
exit $code
`

/** Shell of a reader: with a home folder, a working folder and stubs of programs. */
export async function openShell(given: Env, stubs: Readonly<Record<string, Stub>> = {}) {
  const home = makeHome()
  const bin = join(home.home, 'bin')
  const work = join(home.home, 'work')
  const socket = join(home.home, 'stubs')
  const calls: Call[] = []
  const pinfold: Stub = (args, env) => run(args, { env: settingsOf(env) })
  const programs: Readonly<Record<string, Stub>> = { pinfold, ...stubs }
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => void answer(Buffer.concat(chunks).toString()).then(() => res.end()))
  })
  const answer = async (folder: string): Promise<void> => {
    const parts = (name: string) => readFileSync(join(folder, name), 'utf8').split('\0').slice(0, -1)
    const program = readFileSync(join(folder, 'program'), 'utf8').trim()
    const args = parts('args')
    const env = Object.fromEntries(parts('env').map((line) => line.split(/=(.*)/s).slice(0, 2))) as Env
    calls.push({ program, args })
    const outcome = await Promise.resolve(programs[program]!(args, env)).catch((error: Error) => {
      return { code: 98, stderr: `${program}: ${error.stack}\n` }
    })
    const { code = 0, stdout = '', stderr = '' } = outcome as Partial<Run>
    for (const [name, value] of Object.entries({ stdout, stderr, code }))
      writeFileSync(join(folder, name), String(value))
  }
  for (const folder of [bin, work]) mkdirSync(folder)
  for (const name of Object.keys(programs)) {
    writeFileSync(join(bin, name), stubScript(socket))
    chmodSync(join(bin, name), 0o755)
  }
  await new Promise<void>((resolve) => server.listen(socket, resolve))
  const env: Env = { ...home.env, PATH: `${bin}:${process.env.PATH}`, ...given }
  return {
    work,
    home,
    env,
    /** Calls of stubs so far, without those of `pinfold`. */
    calls: (): Call[] => calls.filter(({ program }) => program !== 'pinfold'),
    /**
     * Runs a block, and returns its output and its standard error. `replaced` has the hosts, folders and placeholders of the
     * page. Fails if the block ends with an error.
     */
    async paste(block: string, replaced: Texts = {}): Promise<{ stdout: string; stderr: string }> {
      assert.ok(block, 'no such block')
      const script = Object.entries(replaced).reduce((text, [written, real]) => {
        assert.ok(text.includes(written), `${written} is not in the block:\n${block}`)
        return text.replaceAll(written, real)
      }, block)
      const { code, stdout, stderr } = await runProcess(['-euc', script], { command: 'sh', env, cwd: work })
      assert.equal(code, 0, `${script}\n${stdout}${stderr}`)
      return { stdout, stderr }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      home[Symbol.dispose]()
    },
  }
}

export type Shell = Awaited<ReturnType<typeof openShell>>

/** Variables that a command of the shell reads. */
function settingsOf(env: Env): Env {
  const names = /^(?:PINFOLD_|XDG_|ACTIONS_|HOME$|PATH$|BROWSER$|DOCKER_CONFIG$|TMPDIR$)/
  return Object.fromEntries(Object.entries(env).filter(([name]) => names.test(name))) as Env
}
