import { Command as Program } from 'commander'

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

/** A command is data and one function; it answers with the exit code. */
export type Command = {
  name: string
  summary: string
  /** Long option with its placeholder, such as `--data <dir>`, and what it does. */
  options: readonly { flags: string; summary: string }[]
  run(terminal: Terminal, options: Record<string, string | boolean | undefined>): Promise<number>
}

export const exitCodes = { ok: 0, failed: 1, usage: 64, unavailable: 69, config: 78 } as const

/** The program with its help, version and completion; `finish` gets the exit code of the command that ran. */
export function createProgram(
  commands: readonly Command[],
  version: string,
  terminal: Terminal,
  finish: (code: number) => void,
): Program {
  const program = new Program('pinfold')
    .description('The registry control plane that remembers every move of every tag.')
    .version(version, '--version')
    .showHelpAfterError('(see pinfold --help)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.print(text.replace(/\n$/, '')),
      writeErr: (text) => terminal.say(text.replace(/\n$/, '')),
    })
  for (const command of commands) {
    const sub = program.command(command.name).description(command.summary).exitOverride()
    sub.copyInheritedSettings(program)
    for (const { flags, summary } of command.options) sub.option(flags, summary)
    sub.action(async (options: Record<string, string | boolean | undefined>) => {
      finish(await command.run(terminal, options))
    })
  }
  return program
}
