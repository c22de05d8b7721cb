// Runs a command line and returns its exit code: the whole program except for the process around it.
import { commands } from './cli/commands.ts'
import { CliError, exitCodes } from './cli/framework/cli-error.ts'
import type { Terminal } from './cli/framework/command.ts'
import { runProgram } from './cli/framework/program.ts'
import { useProxy } from './cli/framework/unreachable.ts'
import { isUnavailable, refusalAdvice } from './db/unavailable.ts'
import { version } from './version.ts'

/** Runs the command of `argv`, prints its error if it fails, and returns the exit code. */
export async function runCommandLine(terminal: Terminal, argv: readonly string[]): Promise<number> {
  try {
    // A server connects directly, since it checks the addresses that it connects to.
    if (argv[2] !== 'serve') useProxy(terminal.env)
    return await runProgram(commands, version, terminal, argv)
  } catch (error) {
    for (const line of messageOf(error).split('\n')) terminal.say(`pinfold: ${line}`)
    if (terminal.env.PINFOLD_LOG_LEVEL === 'debug') terminal.say(String((error as Error).stack))
    if (error instanceof CliError) return error.exitCode
    // Compares the name of the error class, since not every command has loaded the settings, which define the class.
    if ((error as Error).name === 'ConfigError' || refusalAdvice(error)) return exitCodes.config
    return isUnavailable(error) ? exitCodes.unavailable : exitCodes.failed
  }
}

/** Advice for a network error: check that the database runs at its URL. Empty for other errors. */
function networkAdvice(error: unknown): string {
  const isAway = /^E(?!RR_)[A-Z_]+$/.test(String((error as NodeJS.ErrnoException).code))
  return isAway ? '; check that it runs, and that the URL of PINFOLD_DATABASE or --database is correct' : ''
}

/** Message of an error. If all addresses of a host refuse the connection, Node's error has no message, so its code is shown. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const reason = error.message || String((error as NodeJS.ErrnoException).code ?? error.name)
  const next = refusalAdvice(error)
  if (next) return `the database refused the connection: ${reason}\n${next}`
  return isUnavailable(error) ? `the database is unavailable: ${reason}${networkAdvice(error)}` : reason
}
