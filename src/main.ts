// From the command line to a command; the only file that may end the process.
import { text } from 'node:stream/consumers'
import { events } from './cli/events/events.ts'
import { auth } from './cli/iam/auth.ts'
import { bindings } from './cli/iam/bindings.ts'
import { identities } from './cli/iam/identities.ts'
import { sessions } from './cli/iam/sessions.ts'
import { imports } from './cli/imports/import.ts'
import { libraries } from './cli/imports/libraries.ts'
import { dockerCredential } from './cli/registry/docker-credential.ts'
import { images } from './cli/registry/images.ts'
import { config } from './cli/server/config.ts'
import { gc } from './cli/server/gc.ts'
import { keys } from './cli/server/keys.ts'
import { ledger } from './cli/server/ledger.ts'
import { migrate } from './cli/server/migrate.ts'
import { quotas } from './cli/server/quotas.ts'
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
  ...(process.stdin.isTTY && process.stderr.isTTY ? { ask } : {}),
  untilAsked: () =>
    new Promise((resolve) => {
      // Not only once: npm passes on the Ctrl-C that the terminal has sent us already.
      for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve())
    }),
}

// Whoever reads our output may stop reading, as `head` does; a server goes on without.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
}

async function ask(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  using lines = createInterface({ input: process.stdin, output: process.stderr })
  // At the end of the input there is no answer, and the promise of one would stay open.
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')))
  return await Promise.race([lines.question(question), ended])
}

async function main(): Promise<number> {
  try {
    return await runProgram(
      [
        serve,
        auth,
        identities,
        bindings,
        sessions,
        images,
        events,
        imports,
        libraries,
        gc,
        keys,
        ledger,
        quotas,
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
