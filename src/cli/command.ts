import tab from '@bomb.sh/tab/commander'
import { CommanderError, Command as Program } from 'commander'

/** Where a command reads and writes; a test gives its own. */
export type Terminal = {
  env: Record<string, string | undefined>
  /** One line for people or programs, on standard output. */
  print(line: string): void
  /** One line about what went wrong or is going on, on standard error. */
  say(line: string): void
  /** Resolves when the process is asked to end. */
  untilAsked(): Promise<void>
}

/** A command is data and one function; what only the function needs it imports there, so that help and completion are quick. */
export type Command = {
  name: string
  summary: string
  /** More for the command's own help, after its options. */
  details?: string
  /** Long option with its placeholder, such as `--data <dir>`, and what it does. */
  options: readonly { flags: string; summary: string }[]
  /** Answers with the exit code. */
  run(terminal: Terminal, options: Record<string, string | boolean | undefined>): Promise<number>
}

export const exitCodes = { ok: 0, failed: 1, usage: 64, unavailable: 69, config: 78 } as const

const exitHelp = `
Exit codes: 0 done, 1 failed, 64 wrong usage, 69 the database is not available, 78 a setting is wrong.`

/** Runs one command, with help, version and completion; returns its exit code. What a command throws comes through. */
export async function runProgram(
  commands: readonly Command[],
  version: string,
  terminal: Terminal,
  argv: readonly string[],
): Promise<number> {
  let code: number = exitCodes.ok
  const program = new Program('pinfold')
    .description('The registry control plane that remembers every move of every tag.')
    .version(version, '--version', 'Print the version')
    .helpOption('-h, --help', 'Show this help')
    .helpCommand('help [command]', 'Show the help of a command')
    .addHelpText('after', exitHelp)
    .showHelpAfterError('(see pinfold --help)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.print(text.replace(/\n$/, '')),
      writeErr: (text) => terminal.say(text.replace(/\n$/, '')),
      outputError: (text, write) => write(text.replace(/^error: /, 'pinfold: ')),
    })
  for (const command of commands) {
    const sub = program.command(command.name).description(command.summary)
    sub.copyInheritedSettings(program).showHelpAfterError(`(see pinfold ${command.name} --help)`)
    if (command.details) sub.addHelpText('after', `\n${command.details}`)
    for (const { flags, summary } of command.options) sub.option(flags, summary)
    sub.action(async (options: Record<string, string | boolean | undefined>) => {
      code = await command.run(terminal, options)
    })
  }
  tab(program)
  program.commands
    .find((sub) => sub.name() === 'complete')
    ?.description('Print a completion script for zsh, bash, fish or powershell')
    .addHelpText('after', '\nFor example: source <(pinfold complete bash), with pinfold on the PATH.')

  try {
    await program.parseAsync(argv)
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    throw error
  }
}
