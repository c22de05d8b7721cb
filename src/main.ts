// From the command line to a command; the only file that may end the process.
import { commands } from './cli/commands.ts'
import { CliError, exitCodes, runProgram, type Terminal } from './cli/shape/command.ts'
import { visible } from './cli/shape/plain-text.ts'
import { isUnavailable, whyRefused } from './db/unavailable.ts'
import { version } from './version.ts'

let isOutputLost = false

const terminal: Terminal = {
  env: process.env,
  input: async () => (await import('node:stream/consumers')).text(process.stdin),
  print: (line) => void process.stdout.write(`${line}\n`),
  isSeen: isSeen(),
  // What a server has answered may be among it.
  say: (text) => void process.stderr.write(`${text.split('\n').map(visible).join('\n')}\n`),
  ...(process.stderr.isTTY ? { status: (line) => void process.stderr.write(`\r\x1b[K${line}`) } : {}),
  ...(process.stdin.isTTY && process.stderr.isTTY ? { ask } : {}),
  preferred: async () => (await import('./cli/shape/preferences.ts')).preferredOptions(process.env),
  untilAsked: () =>
    new Promise((resolve) => {
      // Not only once: npm passes on the Ctrl-C that the terminal has sent us already.
      for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve())
    }),
}

// A reader of our output may stop reading, as `head` does. Any other error ends a command, since its result is incomplete; a
// server goes on without its output.
process.stderr.on('error', () => {})
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE' || isOutputLost) return
  isOutputLost = true
  terminal.say(`pinfold: standard output cannot be written: ${error.message}`)
  if (process.argv[2] !== 'serve') process.exit(exitCodes.failed)
})

/**
 * Somebody sits there and nothing keeps what is printed. Whoever runs a container keeps its output, also that of one with
 * a terminal, where the main process has the id 1 or `container` is set.
 */
function isSeen(): boolean {
  return process.stdin.isTTY && process.stdout.isTTY && process.pid !== 1 && !process.env.container
}

async function ask(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  using lines = createInterface({ input: process.stdin, output: process.stderr })
  // At the end of the input there is no answer, and the promise of one would stay open.
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')))
  return await Promise.race([lines.question(visible(question)), ended])
}

async function main(): Promise<number> {
  try {
    return await runProgram(commands, version, terminal, process.argv)
  } catch (error) {
    for (const line of messageOf(error).split('\n')) terminal.say(`pinfold: ${line}`)
    if (process.env.PINFOLD_LOG_LEVEL === 'debug') terminal.say(String((error as Error).stack))
    if (error instanceof CliError) return error.exitCode
    // Its class is in the table of settings, which not every command loads.
    if ((error as Error).name === 'ConfigError' || whyRefused(error)) return exitCodes.config
    return isUnavailable(error) ? exitCodes.unavailable : exitCodes.failed
  }
}

/** What to look at where the database is on another machine, or should be. */
function lookAt(error: unknown): string {
  const isAway = /^E(?!RR_)[A-Z_]+$/.test(String((error as NodeJS.ErrnoException).code))
  return isAway ? '; look whether it runs, and whether the URL of PINFOLD_DATABASE or --database is where it does' : ''
}

/** Node gives no message to the error of a host that refused on each of its addresses. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const reason = error.message || String((error as NodeJS.ErrnoException).code ?? error.name)
  const next = whyRefused(error)
  if (next) return `the database does not let us in: ${reason}\n${next}`
  return isUnavailable(error) ? `the database is not available: ${reason}${lookAt(error)}` : reason
}

process.exitCode = await main()
if (process.exitCode !== exitCodes.ok) process.exit()
