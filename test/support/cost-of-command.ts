// Cost of a command of the real program: the modules that it loads, and its processor time.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Env, project, type Run, runProcess } from './process.ts'

export type Cost = Run & {
  /** Ours by their path in the project, of packages from `node_modules/` on; Node's own are left out. */
  modules: string[]
  /** Node's own, as Node names them. */
  ofNode: string[]
  cpuMs: number
}

/** Runs a command to its end. Everything that is loaded with it is part of the cost. */
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

/** For a program that is started otherwise, with this environment; `read` once it has ended. */
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
