import { spawnSync } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root: string = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')

/** Runs a tool of the project, with the project's Node first on the PATH. Returns its exit code. */
export function run(command: string, args: readonly string[], env: Record<string, string> = {}): number {
  const path = [join(root, 'node_modules/.bin'), join(process.execPath, '..'), process.env.PATH].join(delimiter)
  const done = spawnSync(command, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env, PATH: path } })
  if (done.error) throw done.error
  return done.status ?? 1
}

/** Runs a tool like `run`. If the tool fails, ends the script. */
export function must(command: string, args: readonly string[], env: Record<string, string> = {}): void {
  const code = run(command, args, env)
  if (code !== 0) process.exit(code)
}
