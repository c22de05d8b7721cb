// From the command line to a command; the only file that may end the process.
import { text } from 'node:stream/consumers'
import { events } from './cli/events/events.ts'
import { auth } from './cli/iam/auth.ts'
import { identities } from './cli/iam/identities.ts'
import { imports } from './cli/imports/import.ts'
import { libraries } from './cli/imports/libraries.ts'
import { dockerCredential } from './cli/registry/docker-credential.ts'
import { images } from './cli/registry/images.ts'
import { config } from './cli/server/config.ts'
import { gc } from './cli/server/gc.ts'
import { ledger } from './cli/server/ledger.ts'
import { migrate } from './cli/server/migrate.ts'
import { serve } from './cli/server/serve.ts'
import { token } from './cli/server/token.ts'
import { CliError, exitCodes, runProgram, type Terminal } from './cli/shape/command.ts'
import { ConfigError, version } from './config.ts'
import { isUnavailable } from './db/unavailable.ts'

const terminal: Terminal = {
  env: process.env,
  input: () => text(process.stdin),
  print: (line) => void process.stdout.write(`${line}\n`),
  say: (line) => void process.stderr.write(`${line}\n`),
  ...(process.stderr.isTTY ? { status: (line) => void process.stderr.write(`\r\x1b[K${line}`) } : {}),
  untilAsked: () =>
    new Promise((resolve) => {
      // Not only once: npm passes on the Ctrl-C that the terminal has sent us already.
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve())
    }),
}

// Whoever reads our output may stop reading, as `head` does; a server goes on without.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
}

async function main(): Promise<number> {
  try {
    return await runProgram(
      [
        serve,
        auth,
        identities,
        images,
        events,
        imports,
        libraries,
        gc,
        ledger,
        token,
        dockerCredential,
        migrate,
        config,
      ],
      version,
      terminal,
      process.argv,
    )
  } catch (error) {
    for (const line of messageOf(error).split('\n')) terminal.say(`pinfold: ${line}`)
    if (process.env.PINFOLD_LOG_LEVEL === 'debug') terminal.say(String((error as Error).stack))
    if (error instanceof CliError) return error.exitCode
    if (error instanceof ConfigError) return exitCodes.config
    return isUnavailable(error) ? exitCodes.unavailable : exitCodes.failed
  }
}

/** Node gives no message to the error of a host that refused on each of its addresses. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const reason = error.message || String((error as NodeJS.ErrnoException).code ?? error.name)
  return isUnavailable(error) ? `the database is not available: ${reason}` : reason
}

process.exitCode = await main()
if (process.exitCode !== exitCodes.ok) process.exit()
