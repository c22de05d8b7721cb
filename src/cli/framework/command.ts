import { CommanderError, Option, Command as Program } from 'commander'
import { exitCodes } from './cli-error.ts'

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
}

/** The option's name in camel case, as its value comes. */
export function keyOf(flags: string): string {
  const name = /--([a-z-]+)/.exec(flags)![1]!
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/**
 * Argument without a dash after the command, such as `<image>`, `[tag]` or `<file...>`. Its value is in the options, by its name.
 */
export type ArgumentSpec = { name: string; summary: string }

export const outputOption: OptionSpec = {
  flags: '-o, --output <format>',
  summary: 'table, or json for programs',
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
  /** The word that a group takes if the next word names none of its commands, such as `list` for `images tags acme/app`. */
  usual: Readonly<Record<string, string>>
  load(path: string): Promise<Command>
}

const exitHelp = `
Exit codes: 0 done, 1 failed, 64 wrong usage, 69 the server or its database is not available, 77 not signed in or
refused, 78 a setting is wrong.`

/**
 * Runs one command, with help, version and completion; returns its exit code. Passes on errors of the command. Loads only the
 * command that the command line names.
 */
export async function runProgram(
  table: CommandTable,
  version: string,
  terminal: Terminal,
  argv: readonly string[],
): Promise<number> {
  let code: number = exitCodes.ok
  const program = new Program('pinfold')
    .description('A container registry that remembers every move of every tag, and the control plane around it.')
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
  const running: Running = {
    run: async (command, options) => {
      code = await command.run(terminal, options)
    },
    preferred: async () => (await terminal.preferred?.()) ?? {},
  }
  const words = argv.slice(2).filter((word) => !word.startsWith('-'))
  const completes = words[0] === completion.name
  const named = completes || words[0] === 'help' ? words.slice(1) : words
  for (const path of wordsBelow(table, '')) await addCommand(program, path, running, named, { table, completes })
  await addCompletion(program, completes)

  try {
    await program.parseAsync(argv)
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    throw error
  }
}

const completion = { name: 'complete', summary: 'Print a completion script for zsh, bash, fish or powershell' }

/** Completion is loaded only when a command line is completed, and knows the earlier words of that line. */
async function addCompletion(program: Program, wanted: boolean): Promise<void> {
  if (wanted) (await import('@bomb.sh/tab/commander')).default(program)
  const known = program.commands.find((sub) => sub.name() === completion.name)
  const sub = known ?? program.command(completion.name)
  sub
    .description(completion.summary)
    .addHelpText('after', '\nFor example: source <(pinfold complete bash), with pinfold on the PATH.')
}

type Running = {
  run(command: Command, options: Options): Promise<void>
  preferred(): Promise<Readonly<Record<string, string>>>
}

/** The paths one word below this one; the empty path is the program. */
function wordsBelow({ summaries }: CommandTable, path: string): string[] {
  const before = path === '' ? '' : `${path} `
  return Object.keys(summaries).filter((one) => one.startsWith(before) && !one.slice(before.length).includes(' '))
}

/** Adds a command and all below it. `words` are the remaining words of the command line; they select the modules to load. */
async function addCommand(
  parent: Program,
  path: string,
  running: Running,
  words: readonly string[],
  { table, usual = false, completes }: { table: CommandTable; usual?: boolean; completes: boolean },
): Promise<void> {
  const name = path.slice(path.lastIndexOf(' ') + 1)
  const sub = parent.command(name, { isDefault: usual }).description(table.summaries[path]!)
  sub.showHelpAfterError(`(see pinfold ${path} --help)`)
  if (words[0] !== name) return
  const left = words.slice(1)
  const below = wordsBelow(table, path)
  if (below.length > 0) {
    const meant = table.usual[path]
    const next = meant === undefined || below.includes(`${path} ${left[0]}`) ? left : [meant, ...left]
    for (const one of below) {
      await addCommand(sub, one, running, next, { table, usual: one === `${path} ${meant}`, completes })
    }
    return
  }
  const command = await table.load(path)
  if (command.details) sub.addHelpText('after', `\n${command.details}`)
  for (const argument of command.arguments ?? []) sub.argument(argument.name, argument.summary)
  // A deletion never uses a preferred group: the user has to name it.
  const mayPrefer = !completes && name !== 'delete' && command.options.some(({ flags }) => preferable.test(flags))
  const preferred = mayPrefer ? await running.preferred() : {}
  for (const option of command.options) sub.addOption(optionOf(option, preferred))
  sub.action(() => running.run(command, { ...argumentsOf(sub), ...sub.opts<Options>() }))
}

function argumentsOf(sub: Program): Options {
  const named = sub.registeredArguments.map((argument, i) => [argument.name(), sub.processedArgs[i]] as const)
  return Object.fromEntries(named)
}

/** The options that users set once for all commands. */
const preferable = /--(?:parent|output) </

function optionOf(
  { flags, summary, required, repeat, choices }: OptionSpec,
  preferred: Readonly<Record<string, string>>,
): Option {
  const option = new Option(flags, summary).makeOptionMandatory(required ?? false)
  if (choices) option.choices(choices)
  const usual = preferable.test(flags) ? preferred[option.attributeName()] : undefined
  // Not every command supports every output format, and `--output` of some commands is a file.
  if (usual !== undefined && (choices?.includes(usual) ?? option.attributeName() === 'parent')) option.default(usual)
  if (repeat) option.argParser((value: string, before?: readonly string[]) => [...(before ?? []), value])
  return option
}
