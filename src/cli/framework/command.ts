// Types of commands, and of the terminal that they run in.

/** Input and output of a command. Tests pass their own. */
export type Terminal = {
  env: Record<string, string | undefined>
  /** Reads all of standard input. */
  input(): Promise<string>
  /** Prints one line of the result on standard output. */
  print(line: string): void
  /** True if a user sees the output on a terminal, and the output is not stored. */
  isSeen?: boolean
  /** True if the process runs only this command, so the command may change settings of the process. */
  ownsProcess?: boolean
  /** Prints one line about an error or the progress, on standard error. */
  say(line: string): void
  /** Replaces the status line of a terminal. An empty text removes it. Undefined without a terminal. */
  status?(line: string): void
  /** Asks the user a question and returns the answer. Undefined if no user can answer. */
  ask?(question: string): Promise<string>
  /** The user's defaults for options of commands, by the camelCase names of the options. */
  preferred?(): Promise<Readonly<Record<string, string>>>
  /** Resolves when a signal asks the process to end. */
  untilSignaled(): Promise<void>
}

/** Values of options by their camelCase names: text, `true` for a switch, or a list for a repeatable option. */
export type Options = Record<string, string | boolean | readonly string[] | undefined>

export type OptionSpec = {
  /** The long option with its placeholder, such as `--data <dir>`. A one-letter option or an alias may come before it. */
  flags: string
  summary: string
  required?: true
  /** True if a command line may have the option more than once. */
  repeat?: true
  choices?: readonly string[]
  /** Former flags of this option, such as `--parent <group>`. They still work, with a warning. */
  former?: readonly string[]
  /** Key under which the command gets the name of the former option that was given, if former options differ in meaning. */
  formerKey?: string
  /** Former argument that this option replaced. The argument still works, with a warning. */
  formerArgument?: string
  /** Key in the user's defaults. The option has the value of this key if the command line does not set it. */
  default?: 'parent'
}

/** The option's name in camel case, which is the key of its value. */
export function keyOf(flags: string): string {
  const name = /--([a-z-]+)/.exec(flags)![1]!
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** Positional argument of a command, such as `<image>`, `[tag]` or `<file...>`. Its value is among the options, under its key. */
export type ArgumentSpec = {
  /** Name that the help shows. */
  name: string
  /** Key of the value in the options. Default: the name. */
  key?: string
  summary: string
  /** Flags of the former option that this argument replaced. The option still works, with a warning. */
  former?: string
}

export const outputOption: OptionSpec = {
  flags: '-o, --output <format>',
  summary: 'Output format; json is for programs; default: table',
  choices: ['table', 'json'],
}

/**
 * Description of a command, and the function that runs it. The function imports its own modules, so help and completion stay
 * quick.
 */
export type Command = {
  /** Text that the command's help shows after the options. */
  details?: string
  arguments?: readonly ArgumentSpec[]
  options: readonly OptionSpec[]
  /** Runs the command and returns its exit code. */
  run(terminal: Terminal, options: Options): Promise<number>
}

/** Commands of one module, by their last words. */
export type Commands = Readonly<Record<string, Command>>

/** Table of all commands. Help and completion read only the table; `load` imports the module of one command. */
export type CommandTable = {
  /** Summaries by the words of a command or a group of commands, in the order of the help. */
  summaries: Readonly<Record<string, string>>
  /** Headings of the help. Each lists the first words of its commands. */
  headings: Readonly<Record<string, readonly string[]>>
  /** Default command of a group, for a command line whose next word is no command: `tags acme/app` runs `tags list acme/app`. */
  usual: Readonly<Record<string, string>>
  /** Current words by former words of commands and groups. */
  former: Readonly<Record<string, string>>
  /** Current commands by former commands that have different arguments. */
  replaced: Readonly<Record<string, string>>
  /** Advice for command words that users know from other programs. */
  hints: Readonly<Record<string, string>>
  load(path: string): Promise<Command>
}
