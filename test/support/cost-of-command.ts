// Cost of a command: the modules that it loads, and its processor time.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Env, project, type Run, runProcess } from './process.ts'

export type Cost = Run & {
  /** Loaded modules without those of Node. Paths of our own begin at the project, paths of packages at `node_modules/`. */
  modules: string[]
  /** Loaded modules of Node, by their names in Node. */
  ofNode: string[]
  cpuMs: number
}

/** Runs a command to its end and returns its cost. All loaded modules are part of the cost. */
export async function costOf(
  args: readonly string[],
  { env, input, command }: { env?: Env; input?: string; command?: string } = {},
): Promise<Cost> {
  using counter = countCost()
  const given = { ...env, ...counter.env }
  const done = await runProcess(args, {
    env: given,
    ...(input !== undefined && { input }),
    ...(command && { command }),
  })
  return { ...done, ...counter.read() }
}

/** For a program that the test starts itself with this environment. Call `read` after the program has ended. */
export function countCost() {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-test-'))
  const file = join(folder, 'cost.json')
  const hook = pathToFileURL(join(project, 'test/support/cost-of-command.mjs')).href
  return {
    env: { NODE_OPTIONS: `--import=${hook}`, PINFOLD_TEST_COST: file },
    read(): Omit<Cost, keyof Run> {
      const { modules, ...rest } = JSON.parse(readFileSync(file, 'utf8')) as Omit<Cost, keyof Run>
      const root = pathToFileURL(project).href
      const own = modules.filter((url) => url.startsWith(root)).map((url) => url.slice(root.length))
      return { ...rest, modules: own }
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}
