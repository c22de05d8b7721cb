// Runs commands in the process of the test, since a separate process takes seconds.

import type { Terminal } from '#cli/framework/command.ts'
import { runCommandLine } from '#command-line.ts'
import { visible } from '#lib/terminal/plain-text.ts'

export type Env = Record<string, string>
export type Run = { code: number | null; stdout: string; stderr: string }

/**
 * Runs a command line with `input` as standard input. Returns its output and its exit code. There is no terminal for questions.
 */
export function commandsIn(env: Env, input = ''): (...args: string[]) => Promise<Run> {
  return async (...args) => {
    const [stdout, stderr]: [string[], string[]] = [[], []]
    const terminal: Terminal = {
      env,
      input: async () => input,
      print: (line) => void stdout.push(`${line}\n`),
      say: (text) => void stderr.push(`${text.split('\n').map(visible).join('\n')}\n`),
      preferred: async () => (await import('#cli/framework/preferences.ts')).preferredOptions(env),
      untilSignaled: () => new Promise(() => {}),
    }
    const code = await runCommandLine(terminal, ['node', 'pinfold', ...args])
    return { code, stdout: stdout.join(''), stderr: stderr.join('') }
  }
}
