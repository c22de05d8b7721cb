// The program `pinfold`: finds the command that a command line names, and has help and completion.
import { CommanderError, Command as Program } from 'commander'
import { exitCodes, usageError } from './cli-error.ts'
import type { Command, CommandTable, Options, Terminal } from './command.ts'
import { addParameters, hasPreference } from './parameters.ts'

const exitHelp = `
Exit codes: 0 success, 1 failure, 64 wrong usage, 69 server or database unavailable, 77 not signed in or no
permission, 78 invalid setting.`

/**
 * Runs the command of a command line, or prints help, version or completion. Returns the exit code. Does not catch errors of the
 * command. Loads only the module of this command. Former names work, with a warning.
 */
export async function runProgram(
  table: CommandTable,
  version: string,
  terminal: Terminal,
  given: readonly string[],
): Promise<number> {
  let code: number = exitCodes.ok
  const warn = (former: string, current: string) => terminal.say(`pinfold: ${former} is deprecated; use ${current}`)
  const argv = withCurrentWords(table, withHelpOption(given), warn)
  const program = new Program('pinfold')
    .description('Self-hosted OCI registry that records every change of every tag, with its management commands.')
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
    warn,
  }
  const words = argv.slice(2).filter((word) => !word.startsWith('-'))
  const completes = words[0] === completion.name
  const named = completes ? words.slice(1) : words
  for (const path of wordsBelow(table, '')) await addCommand(program, path, running, named, { table, completes })
  await addCompletion(program, completes)
  for (const [heading, names] of Object.entries(table.headings)) {
    for (const sub of program.commands) if (names.includes(sub.name())) sub.helpGroup(heading)
  }

  try {
    requireKnown(program, table, given)
    const hint = hintFor(table, words)
    if (hint !== undefined) throw usageError(`there is no command pinfold ${words[0]}\n${hint}`)
    await program.parseAsync(argv)
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    throw error
  }
}

/** Throws for help about a command that does not exist. Commander would print the help of the group or the program. */
function requireKnown(program: Program, table: CommandTable, given: readonly string[]): void {
  const rest = given.slice(2)
  const isOption = (word: string) => word.startsWith('-')
  const named = rest[0] === 'help' ? rest.slice(1) : rest
  if (rest[0] !== 'help' && !rest.includes('--help') && !rest.includes('-h')) return
  const end = named.findIndex(isOption)
  const words = named.slice(0, end < 0 ? undefined : end)
  let group = program
  for (const [i, word] of words.entries()) {
    const path = words.slice(0, i).join(' ')
    if (group.commands.length === 0 || table.usual[path] !== undefined) return
    if (table.hints[word] !== undefined || table.former[words.slice(0, i + 2).join(' ')] !== undefined) return
    const found = group.commands.find((sub) => sub.name() === word)
    if (!found)
      throw usageError(
        `unknown command '${word}'; ${['pinfold', path, '--help'].join(' ').replace('  ', ' ')} lists the commands`,
      )
    group = found
  }
}

/** Advice for a command line whose command does not exist. */
function hintFor({ hints, replaced }: CommandTable, words: readonly string[]): string | undefined {
  const [first = ''] = words
  if (!Object.hasOwn(hints, first) || Object.keys(replaced).some((one) => one === words.slice(0, 2).join(' '))) return
  return hints[first]
}

/** Replaces `help` before a command by the option `--help` after it. */
function withHelpOption(argv: readonly string[]): readonly string[] {
  const rest = argv.slice(3)
  if (argv[2] !== 'help' || rest.every((word) => word.startsWith('-'))) return argv
  return [...argv.slice(0, 2), ...rest, '--help']
}

/** Replaces former words of a command by the current ones. Warns, except during completion. */
function withCurrentWords(table: CommandTable, argv: readonly string[], warn: Running['warn']): readonly string[] {
  const completes = argv[2] === completion.name
  const start = completes ? argv.indexOf('--') + 1 : 2
  if (start === 0) return argv
  const end = argv.findIndex((word, i) => i >= start && !/^[a-z][a-z-]*$/.test(word))
  const words = argv.slice(start, end < 0 ? undefined : end)
  for (let length = words.length; length > 0; length--) {
    const former = words.slice(0, length).join(' ')
    if (!Object.hasOwn(table.former, former)) continue
    const current = table.former[former]!
    if (!completes) warn(`pinfold ${former}`, `pinfold ${current}`)
    return [...argv.slice(0, start), ...current.split(' '), ...argv.slice(start + length)]
  }
  return argv
}

const completion = { name: 'complete', summary: 'Print a completion script for zsh, bash, fish or powershell' }

/** The completion module is loaded only to complete a command line. It gets the earlier words of that line. */
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
  /** Warns that a former name was used. */
  warn(former: string, current: string): void
}

/** Paths of commands and groups that are one word longer than `path`. An empty `path` is the program. */
function wordsBelow({ summaries, replaced }: CommandTable, path: string): string[] {
  const before = path === '' ? '' : `${path} `
  const former = Object.keys(replaced).map((one) => one.split(' ').slice(0, before.split(' ').length).join(' '))
  return [...new Set([...Object.keys(summaries), ...former])].filter(
    (one) => one.startsWith(before) && !one.slice(before.length).includes(' '),
  )
}

type Adding = {
  table: CommandTable
  completes: boolean
  /** True for the default command of a group, which runs if the next word names no command of the group. */
  usual?: boolean
  /** True if the command line omits the last word of the command. */
  implied?: boolean
}

/**
 * Adds a command or group and everything below it. `words` are the remaining words of the command line, which select the modules
 * to load.
 */
async function addCommand(
  parent: Program,
  path: string,
  running: Running,
  words: readonly string[],
  { table, completes, usual = false, implied = false }: Adding,
): Promise<void> {
  const name = path.slice(path.lastIndexOf(' ') + 1)
  const current = table.replaced[path]
  const summary = table.summaries[path]
  const sub = parent.command(name, { isDefault: usual, hidden: summary === undefined })
  sub.description(summary ?? (current === undefined ? 'Former group of commands' : `Former name of ${current}`))
  sub.showHelpAfterError(`(see pinfold ${path} --help)`)
  if (words[0] !== name) return
  const left = words.slice(1)
  const below = wordsBelow(table, path)
  if (below.length > 0) {
    const usualWord = table.usual[path]
    // If the default command is a former one and another word follows, the word is probably a misspelled command of the group.
    const isFormer = Object.hasOwn(table.replaced, `${path} ${usualWord}`)
    const meant = isFormer && left.length > 0 ? undefined : usualWord
    const isImplied = meant !== undefined && !below.includes(`${path} ${left[0]}`)
    const next = isImplied ? [meant, ...left] : left
    for (const one of below) {
      const isUsual = one === `${path} ${meant}`
      await addCommand(sub, one, running, next, { table, completes, usual: isUsual, implied: isImplied })
    }
    return
  }
  const command = await table.load(path)
  if (command.details) sub.addHelpText('after', `\n${command.details}`)
  // Preferences never set the group of a deletion, so the user must name it.
  const mayPrefer = !completes && name !== 'delete' && command.options.some(hasPreference)
  const read = addParameters(sub, command, mayPrefer ? await running.preferred() : {}, running.warn)
  sub.action(() => {
    const former = implied ? `pinfold ${path.slice(0, path.lastIndexOf(' '))} without a command` : `pinfold ${path}`
    if (current !== undefined) running.warn(former, `pinfold ${current}`)
    return running.run(command, read())
  })
}
