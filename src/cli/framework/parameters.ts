// Arguments and options of a command for the library Commander, with their former names.
import { Option, type Command as Program } from 'commander'
import { usageError } from './cli-error.ts'
import { type ArgumentSpec, type Command, keyOf, type OptionSpec, type Options } from './command.ts'

type Warn = (former: string, current: string) => void
type Preferred = Readonly<Record<string, string>>

/**
 * Adds the arguments and options of a command. Returns a function that reads their values after parsing. This function warns of
 * former names, and throws a usage error if a value is missing or given twice.
 */
export function addParameters(sub: Program, command: Command, preferred: Preferred, warn: Warn): () => Options {
  const { arguments: positional = [], options } = command
  for (const one of positional) sub.argument(one.former ? optional(one.name) : one.name, one.summary)
  const formerArguments = options.filter(({ formerArgument }) => formerArgument !== undefined)
  for (const { formerArgument } of formerArguments) sub.argument(`[${formerArgument}]`)
  for (const option of options) addOption(sub, option, preferred)
  for (const one of positional) if (one.former) sub.addOption(new Option(one.former).hideHelp())
  const hasFormer = formerArguments.length > 0 || positional.some(({ former }) => former !== undefined)
  if (hasFormer) showOnly(sub, positional)

  return () => {
    const values: Record<string, Options[string]> = { ...sub.opts<Options>() }
    const keys = new Map(positional.map(({ name, key }) => [bare(name), key]))
    for (const [i, one] of sub.registeredArguments.entries()) {
      const [key, value] = [keys.get(one.name()) ?? one.name(), sub.processedArgs[i]]
      if (value !== undefined || !(key in values)) values[key] = value
    }
    for (const one of positional) if (one.former) readArgument(sub, one, values, warn)
    for (const option of options) readOption(sub, option, values, warn)
    return values
  }
}

const optional = (name: string): string => name.replace('<', '[').replace('>', ']')
const bare = (name: string): string => name.replace(/[<>[\].]/g, '')
const flagOf = (flags: string): string => /--[a-z-]+/.exec(flags)![0]

/** The help shows only current arguments, not former ones. */
function showOnly(sub: Program, positional: readonly ArgumentSpec[]): void {
  sub.usage(['[options]', ...positional.map(({ name }) => name)].join(' '))
  const names = new Set(positional.map(({ name }) => bare(name)))
  sub.configureHelp({ visibleArguments: (shown) => shown.registeredArguments.filter((one) => names.has(one.name())) })
}

function addOption(sub: Program, spec: OptionSpec, preferred: Preferred): void {
  const option = new Option(spec.flags, spec.summary)
  // A required option may be given by a former name, which Commander does not know. So the option is checked after parsing.
  option.makeOptionMandatory(spec.required === true && !hasFormerNames(spec))
  if (spec.choices) option.choices(spec.choices)
  const preference = preferenceOf(spec, option, preferred)
  if (preference !== undefined) option.default(preference)
  if (spec.repeat) option.argParser(append)
  sub.addOption(option)
  for (const flags of spec.former ?? []) {
    const former = new Option(flags).hideHelp()
    if (spec.choices) former.choices(spec.choices)
    if (spec.repeat) former.argParser(append)
    sub.addOption(former)
  }
}

/**
 * The user's default for an option. A default output format applies only to commands that support it, and not if `--output` is a
 * file.
 */
function preferenceOf({ choices, default: key }: OptionSpec, option: Option, preferred: Preferred): string | undefined {
  if (key !== undefined) return preferred[key]
  const format = option.attributeName() === 'output' ? preferred.output : undefined
  return format !== undefined && choices?.includes(format) ? format : undefined
}

const append = (value: string, before?: readonly string[]): string[] => [...(before ?? []), value]

/** True if the user's defaults can set the option. */
export function hasPreference({ default: key, flags, choices }: OptionSpec): boolean {
  return key !== undefined || (keyOf(flags) === 'output' && choices !== undefined)
}

function hasFormerNames({ former, formerArgument }: OptionSpec): boolean {
  return former !== undefined || formerArgument !== undefined
}

/** Sets an argument whose value was given with its former option. */
function readArgument(sub: Program, spec: ArgumentSpec, values: Record<string, Options[string]>, warn: Warn): void {
  const [name, former] = [bare(spec.name), keyOf(spec.former!)]
  const given = sub.opts<Options>()[former]
  if (given !== undefined) {
    const position = sub.registeredArguments.findIndex((one) => one.name() === name)
    if (sub.processedArgs[position] !== undefined)
      throw usageError(`give ${name} once, without ${flagOf(spec.former!)}`)
    warn(flagOf(spec.former!), `the argument <${name}>`)
    values[name] = given
  }
  if (values[name] === undefined && spec.name.startsWith('<')) throw usageError(`missing required argument '${name}'`)
}

/** Sets an option whose value was given with a former flag. */
function readOption(sub: Program, spec: OptionSpec, values: Record<string, Options[string]>, warn: Warn): void {
  if (!hasFormerNames(spec)) return
  const [key, flag] = [keyOf(spec.flags), flagOf(spec.flags)]
  const formers = [
    ...(spec.former ?? []).map((flags) => ({ name: keyOf(flags), shown: flagOf(flags) })),
    ...(spec.formerArgument ? [{ name: spec.formerArgument, shown: `the argument <${spec.formerArgument}>` }] : []),
  ]
  let isGiven = sub.getOptionValueSource(key) === 'cli'
  for (const { name, shown } of formers) {
    const value = values[name]
    if (name !== key) delete values[name]
    if (value === undefined || name === key) continue
    if (isGiven) throw usageError(`${flag} and ${shown} have the same meaning; use only ${flag}`)
    isGiven = true
    warn(shown, flag)
    values[key] = value
    if (spec.formerKey) values[spec.formerKey] = name
  }
  if (spec.required && values[key] === undefined) throw usageError(`required option '${spec.flags}' not specified`)
}
