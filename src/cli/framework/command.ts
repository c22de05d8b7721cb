// Types of commands, and of the terminal that they run in.

/** Input and output of a command; a test passes its own. */
export type Terminal = {
  env: Record<string, string | undefined>
  /** All of standard input. */
  input(): Promise<string>
  /** One line for people or programs, on standard output. */
  print(line: string): void
  /** True if a user sees the output, and it is not stored. */
  isSeen?: boolean
  /** Prints one line about an error or the progress, on standard error. */
  say(line: string): void
  /** Shows one line in place of the previous one, if there is a screen for it; an empty text removes it. */
  status?(line: string): void
  /** Asks the user a question and returns the answer; undefined if nobody can answer. */
  ask?(question: string): Promise<string>
  /** The user's preferences for the options of commands, by their camelCase names. */
  preferred?(): Promise<Readonly<Record<string, string>>>
  /** Resolves when the process is asked to end. */
  untilAsked(): Promise<void>
}

/** Values of the options by their camelCase names: text, `true` for a switch, a list if the option can be repeated. */
export type Options = Record<string, string | boolean | readonly string[] | undefined>

export type OptionSpec = {
  /** The long option with its placeholder, such as `--data <dir>`, and perhaps a letter, or another word for it, before it. */
  flags: string
  summary: string
  required?: true
  /** May be given more than once. */
  repeat?: true
  choices?: readonly string[]
  /** Former flags, which keep working with a warning, such as `--parent <group>`. */
  former?: readonly string[]
  /** Name of the optional argument that the option was, which keeps working with a warning. */
  formerArgument?: string
  /** The key in the user's defaults whose value the option takes if it is not given. */
  default?: 'parent'
}

/** The option's name in camel case, as its value comes. */
export function keyOf(flags: string): string {
  const name = /--([a-z-]+)/.exec(flags)![1]!
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/**
 * Argument without a dash after the command, such as `<image>`, `[tag]` or `<file...>`. Its value is in the options, by its key.
 */
export type ArgumentSpec = {
  /** Name in the help. */
  name: string
  /** Name of its value in the options, if it is not the name. */
  key?: string
  summary: string
  /** Flags of the option that the argument was, which keeps working with a warning. */
  former?: string
}

export const outputOption: OptionSpec = {
  flags: '-o, --output <format>',
  summary: 'Output format; json is for programs; default: table',
  choices: ['table', 'json'],
}

/** A command is data and one function. The function imports what only it needs, so that help and completion are quick. */
export type Command = {
  /** More for the command's own help, after its options. */
  details?: string
  arguments?: readonly ArgumentSpec[]
  options: readonly OptionSpec[]
  /** Returns the exit code. */
  run(terminal: Terminal, options: Options): Promise<number>
}

/** Commands by their last words. */
export type Commands = Readonly<Record<string, Command>>

/** All commands. Help and completion read the table; `load` loads one command. */
export type CommandTable = {
  /** By the words of a command or a group of commands, in the order of the help. */
  summaries: Readonly<Record<string, string>>
  /** Headings of the help, with the first words of the commands below each. */
  headings: Readonly<Record<string, readonly string[]>>
  /** The word that a group takes if the next word names none of its commands, such as `list` for `tags acme/app`. */
  usual: Readonly<Record<string, string>>
  /** Current words by former words of commands and groups. */
  former: Readonly<Record<string, string>>
  /** Former commands whose arguments differ from those of the current command, which they name. */
  replaced: Readonly<Record<string, string>>
  /** Advice for words that users know from other programs. */
  hints: Readonly<Record<string, string>>
  load(path: string): Promise<Command>
}
