// What a command of the real program costs: the modules that it loads, and its processor time.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Env, project, type Run, run } from './process.ts'

export type Cost = Run & {
  /** Ours by their path in the project, of packages from `node_modules/` on; Node's own are left out. */
  modules: string[]
  /** Node's own, as Node names them. */
  ofNode: string[]
  cpuMs: number
}

/** Runs a command to its end. Whatever else is loaded with it is part of the cost. */
export async function costOf(
  args: readonly string[],
  { env, input, command }: { env?: Env; input?: string; command?: string } = {},
): Promise<Cost> {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-test-'))
  const file = join(folder, 'cost.json')
  const hook = pathToFileURL(join(project, 'test/support/cost-of-command.mjs')).href
  const given = { ...env, NODE_OPTIONS: `--import=${hook}`, PINFOLD_TEST_COST: file }
  try {
    const done = await run(args, { env: given, ...(input !== undefined && { input }), ...(command && { command }) })
    const { modules, ...rest } = JSON.parse(readFileSync(file, 'utf8')) as Omit<Cost, keyof Run>
    const root = pathToFileURL(project).href
    const own = modules.filter((url) => url.startsWith(root)).map((url) => url.slice(root.length))
    return { ...done, ...rest, modules: own }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
