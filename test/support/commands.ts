// Commands of the program in the process of the test: a process for each takes seconds.

import type { Terminal } from '#cli/framework/command.ts'
import { visible } from '#cli/framework/plain-text.ts'
import { runCommandLine } from '#command-line.ts'

export type Env = Record<string, string>
export type Run = { code: number | null; stdout: string; stderr: string }

/** Output and exit code of a command line that reads `input`, without a terminal for questions. */
export function commandsIn(env: Env, input = ''): (...args: string[]) => Promise<Run> {
  return async (...args) => {
    const [stdout, stderr]: [string[], string[]] = [[], []]
    const terminal: Terminal = {
      env,
      input: async () => input,
      print: (line) => void stdout.push(`${line}\n`),
      say: (text) => void stderr.push(`${text.split('\n').map(visible).join('\n')}\n`),
      preferred: async () => (await import('#cli/framework/preferences.ts')).preferredOptions(env),
      untilAsked: () => new Promise(() => {}),
    }
    const code = await runCommandLine(terminal, ['node', 'pinfold', ...args])
    return { code, stdout: stdout.join(''), stderr: stderr.join('') }
  }
}
