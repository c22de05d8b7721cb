// From the command line to a command; the only file that may end the process.
import tab from '@bomb.sh/tab/commander'
import { CommanderError } from 'commander'
import { type Command, createProgram, exitCodes, type Terminal } from './cli/command.ts'
import { config } from './cli/config.ts'
import { migrate } from './cli/migrate.ts'
import { serve } from './cli/serve.ts'
import { token } from './cli/token.ts'
import { ConfigError, version } from './config.ts'

const commands: readonly Command[] = [serve, token, migrate, config]

const terminal: Terminal = {
  env: process.env,
  print: (line) => void process.stdout.write(`${line}\n`),
  say: (line) => void process.stderr.write(`${line}\n`),
  untilAsked: () =>
    new Promise((resolve) => {
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
    }),
}

async function main(argv: string[]): Promise<number> {
  let code: number = exitCodes.ok
  const program = createProgram(commands, version, terminal, (given) => {
    code = given
  })
  tab(program)
  try {
    await program.parseAsync(argv)
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    terminal.say(`pinfold: ${error instanceof Error ? error.message : String(error)}`)
    if (error instanceof ConfigError) return exitCodes.config
    if (process.env.PINFOLD_LOG_LEVEL === 'debug') terminal.say(String((error as Error).stack))
    return exitCodes.failed
  }
}

process.exitCode = await main(process.argv)
if (process.exitCode !== exitCodes.ok) process.exit()
