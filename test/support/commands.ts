// Commands in the process of the test, where so many are played that a process for each would take minutes.
import { commands } from '#cli/commands.ts'
import { CliError, runProgram, type Terminal } from '#cli/shape/command.ts'
import type { Env, Run } from './process.ts'

/** What a command line prints, says and ends with; nobody can be asked, and nothing is on its standard input. */
export function commandsIn(env: Env): (...args: string[]) => Promise<Run> {
  return async (...args) => {
    const [stdout, stderr]: [string[], string[]] = [[], []]
    const terminal: Terminal = {
      env,
      input: async () => '',
      print: (line) => void stdout.push(`${line}\n`),
      say: (line) => void stderr.push(`${line}\n`),
      untilAsked: () => new Promise(() => {}),
    }
    let code: number
    try {
      code = await runProgram(commands, '0.0.0', terminal, ['node', 'pinfold', ...args])
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      stderr.push(`pinfold: ${error.message}\n`)
      code = error.exitCode
    }
    return { code, stdout: stdout.join(''), stderr: stderr.join('') }
  }
}
