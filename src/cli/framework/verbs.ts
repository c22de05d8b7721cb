// Commands that all resources share, such as list, create and delete. They are generated from a description of the resource.
import { codes } from '#lib/errors.ts'
import { isUid } from '#lib/uid.ts'
import { ApiError, withHint, withNameHint } from './api-client.ts'
import { type Answer, apiCommand, apiReader, callerOptions } from './api-pages.ts'
import type { ApiReader, Query } from './api-reader.ts'
import { exitCodes, usageError } from './cli-error.ts'
import {
  type ArgumentSpec,
  type Command,
  type Commands,
  keyOf,
  type OptionSpec,
  type Options,
  type Terminal,
} from './command.ts'
import { listCommand } from './list-command.ts'
import { type Mentions, NameNotFound, namesOf } from './names.ts'
import {
  confirm,
  type Item,
  listFormats,
  type Names,
  oneFormats,
  outputOf,
  printList,
  printOne,
  type View,
  yesOption,
} from './outputs.ts'

/** Field of a resource that an option of create and update sets. */
export type Field = {
  flags: string
  summary: string
  /** Path of the field in the body, such as `oidc.clientId`. Default: the name of the option. */
  member?: string
  required?: true
  /** The only command that can set the field. Without it, both create and update can. */
  only?: 'create' | 'update'
  /** The field is a list. The option can be repeated, and commas separate its values. */
  list?: true
  /** The field is an object. The option can be repeated, with values like `name=value`. */
  map?: true
  choices?: readonly string[]
  /** Value of the field in create if the option is not given. */
  usual?: string
  /** Former flags of the option. They still work, with a warning. */
  former?: readonly string[]
  /** Converts the option's value for the body, for example a name to a uid. */
  read?(api: ApiReader, given: string): Promise<unknown> | unknown
}

export type Resource<T extends Item = Item> = View<T> & {
  /** Path of the resource's list in the API. */
  path: string
  member: string
  words: readonly [one: string, many: string]
  fields: readonly Field[]
  /** Help of the argument that selects the resource. Default: its name. */
  called?: string
  /** Finds the uid of the resource that the argument names. */
  find(api: ApiReader, given: string): Promise<string>
  /** Finds the uid of the group or resource in which the resource is created. */
  parent(api: ApiReader, given: string): Promise<string>
  /** Other resources whose names the columns of an item show. */
  mentions(item: T): Mentions
  /** Additional filters of the list command. */
  filters?: readonly (OptionSpec & { query(api: ApiReader, given: Options[string]): Promise<Query> | Query })[]
  /** Next steps after errors: `taken` if the name is in use, `inUse` if other resources prevent the deletion. */
  hints?: { taken?: string; inUse?(given: string): string }
  /** Filters the items of a list in the command, if the API has no such filter. */
  keep?(item: T, options: Options): boolean
}

/** Prints one resource in the requested format. */
export async function shownOne<T extends Item>(api: ApiReader, resource: Resource<T>, item: T): Promise<Answer> {
  const names = await mentioned(api, resource, [item])
  return { print: (terminal, format) => printOne(terminal, format, resource, item, names) }
}

/**
 * Scope of a list command. `argument` or `--in` narrows the list to one parent. `formerArgument` is the former argument that
 * `--in` replaced.
 */
type ListScope = {
  argument?: string
  formerArgument?: string
  summary?: string
  query?: Query
  /** Name of the query parameter for the parent. The list includes all descendants of the parent. */
  scope?: string
}

export function listOf<T extends Item>(
  resource: Resource<T>,
  listScope: ListScope = {
    formerArgument: 'group',
    summary: 'Only items of this organization or folder: ORG, ORG/FOLDER or a uid',
  },
): Command {
  const { path, member, filters = [] } = resource
  const { argument, formerArgument, summary = '' } = listScope
  const recursive: OptionSpec = { flags: '-r, --recursive', summary: 'Include all folders below' }
  return listCommand({
    ...(argument && { arguments: [{ name: argument, summary }] }),
    options: [
      ...(formerArgument ? [{ flags: '--in <path>', summary, formerArgument }] : []),
      ...((argument || formerArgument) && !listScope.scope ? [recursive] : []),
      ...filters.map(({ query: _, ...option }) => option),
      outputOf(listFormats),
    ],
    async run(api, options) {
      const given = argument === undefined ? options.in : options[argument.replace(/[<>[\]]/g, '')]
      const scope = listScope.scope ?? (options.recursive === true ? 'uidp.descendants_of' : 'uidp.children_of')
      let query: Query = {
        ...listScope.query,
        ...(given !== undefined && { [scope]: await resource.parent(api, String(given)) }),
      }
      for (const one of filters) {
        const value = options[keyOf(one.flags)]
        if (value !== undefined) query = { ...query, ...(await one.query(api, value)) }
      }
      const keep = resource.keep && ((item: T) => resource.keep!(item, options))
      const { items, more } = await api.selected<T>(path, member, query, keep)
      const names = await mentioned(api, resource, options.output === 'json' || options.output === 'id' ? [] : items)
      const byPath = (a: T, b: T) => (resource.at(a, names) < resource.at(b, names) ? -1 : 1)
      const sorted = api.isOrdered ? items : items.toSorted(byPath)
      return { print: (terminal, format) => printList(terminal, format, resource, sorted, names), more }
    },
  })
}

export function describeOf<T extends Item>(resource: Resource<T>): Command {
  return apiCommand({
    arguments: [argumentOf(resource)],
    options: [outputOf(oneFormats)],
    async run(api, options) {
      const uid = await resource.find(api, String(options.which))
      return shownOne(api, resource, (await api.call('GET', `${resource.path}/${uid}`)) as T)
    },
  })
}

/** Creates the `create` command. `parentSpec` is the option for the parent of the resource. Without it, the resource has no parent. */
export function createOf<T extends Item>(
  resource: Resource<T>,
  { parentSpec, named = true }: { parentSpec?: OptionSpec; named?: boolean } = {},
): Command {
  const fields = resource.fields.filter(({ only }) => only !== 'update')
  return apiCommand({
    ...(named && { arguments: [{ name: '<name>', summary: `Name of the ${resource.words[0]}` }] }),
    options: [...(parentSpec ? [parentSpec] : []), ...fields.map((field) => optionOf(field)), outputOf(oneFormats)],
    async run(api, options) {
      const parent = parentSpec ? await resource.parent(api, String(options[keyOf(parentSpec.flags)])) : ''
      const body = { ...(named && { name: options.name }), ...(await bodyOf(api, fields, options)) }
      const item = await api.call('POST', `${resource.path}/${parent}`, body).catch((error: unknown) => {
        throw withHint(withNameHint(error), codes.ALREADY_EXISTS.number, resource.hints?.taken)
      })
      return shownOne(api, resource, item as T)
    },
  })
}

export function updateOf<T extends Item>(resource: Resource<T>): Command {
  const fields = resource.fields.filter(({ only }) => only !== 'create')
  const givenIn = (options: Options) => fields.filter(({ flags }) => options[keyOf(flags)] !== undefined)
  return apiCommand({
    arguments: [argumentOf(resource)],
    options: [...fields.map((field) => optionOf(field, 'update')), outputOf(oneFormats)],
    check(options) {
      if (givenIn(options).length > 0) return
      const flags = fields.map((field) => /--[a-z-]+/.exec(field.flags)![0]).join(', ')
      throw usageError(`nothing was changed: give at least one of ${flags}`)
    },
    async run(api, options) {
      const given = givenIn(options)
      const uid = await resource.find(api, String(options.which))
      const mask = given
        .map((field) => memberOf(field).replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
        .join(',')
      const body = await bodyOf(api, given, options)
      const item = await api
        .call('PATCH', `${resource.path}/${uid}?updateMask=${mask}`, body)
        .catch((error: unknown) => {
          throw withNameHint(error)
        })
      return shownOne(api, resource, item as T)
    },
  })
}

/** Commands that every resource has. */
export function verbsOf<T extends Item>(
  resource: Resource<T>,
  { listed, ...made }: { parentSpec?: OptionSpec; named?: boolean; listed?: Parameters<typeof listOf>[1] },
): Commands {
  return {
    create: createOf(resource, made),
    list: listOf(resource, listed),
    describe: describeOf(resource),
    update: updateOf(resource),
    delete: removeOf(resource),
  }
}

export function removeOf<T extends Item>(resource: Resource<T>): Command {
  const { words, path } = resource
  return {
    arguments: [argumentOf(resource)],
    options: [yesOption, allowMissingOption, ...callerOptions],
    async run(terminal, options) {
      const api = await apiReader(terminal, options)
      const given = String(options.which)
      return unlessMissing(terminal, options, async () => {
        const uid = await resource.find(api, given)
        await confirm(terminal, options.yes, `delete the ${words[0]} ${given}`)
        await api.call('DELETE', `${path}/${uid}`).catch((error: unknown) => {
          throw withHint(error, codes.FAILED_PRECONDITION.number, resource.hints?.inUse?.(given))
        })
        terminal.say(`Deleted the ${words[0]} ${given}`)
      })
    },
  }
}

/** Makes the argument of a command optional, for commands that can also select resources by an option. */
export function optionalArgument({ arguments: [first] = [] }: Command, more: string): ArgumentSpec {
  return { ...first!, name: first!.name.replace('<', '[').replace('>', ']'), summary: `${first!.summary}; ${more}` }
}

export const allowMissingOption: OptionSpec = {
  flags: '--allow-missing',
  summary: 'Succeed if there is nothing to delete',
}

/**
 * Runs `remove`. With `--allow-missing`, a missing resource is no error. A resource that the caller cannot see
 * still is.
 */
export async function unlessMissing(
  terminal: Terminal,
  { allowMissing }: Options,
  remove: () => Promise<void>,
): Promise<number> {
  try {
    await remove()
  } catch (error) {
    const missing =
      error instanceof NameNotFound || (error instanceof ApiError && error.code === codes.NOT_FOUND.number)
    if (allowMissing !== true || !missing) throw error
    terminal.say('Nothing was deleted: it does not exist')
  }
  return exitCodes.ok
}

const memberOf = ({ member, flags }: Field): string => member ?? keyOf(flags)

/** Builds the body of a request from the options. */
export async function bodyOf(
  api: ApiReader,
  fields: readonly Field[],
  options: Options,
): Promise<Record<string, unknown>> {
  const body: Record<string, unknown> = {}
  for (const field of fields) {
    const given = options[keyOf(field.flags)] ?? field.usual
    if (given === undefined) continue
    const path = memberOf(field).split('.')
    let at = body
    for (const part of path.slice(0, -1)) {
      at[part] ??= {}
      at = at[part] as Record<string, unknown>
    }
    at[path.at(-1)!] = await readValue(api, field, given)
  }
  return body
}

async function readValue(api: ApiReader, field: Field, given: NonNullable<Options[string]>): Promise<unknown> {
  const read = field.read ?? ((_api: ApiReader, text: string): unknown => text)
  if (field.list) {
    const texts = [given]
      .flat()
      .flatMap((text) => String(text).split(','))
      .map((text) => text.trim())
    return await Promise.all(texts.filter(Boolean).map(async (text) => read(api, text)))
  }
  if (field.map) return Object.fromEntries([given].flat().map((text) => pairOf(field.flags, String(text))))
  return typeof given === 'boolean' && !field.read ? given : await read(api, String(given))
}

/** Reads `name=value` or `name:value` from an option. */
export function pairOf(flags: string, text: string): [string, string] {
  const at = text.search(/[=:]/)
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw usageError(`${/--[a-z-]+/.exec(flags)![0]} must be NAME=VALUE`)
}

async function mentioned<T extends Item>(
  api: ApiReader,
  { mentions }: Pick<Resource<T>, 'mentions'>,
  items: readonly T[],
): Promise<Names> {
  const all = items.map(mentions)
  const each = (kind: keyof Mentions) => all.flatMap((one) => one[kind] ?? [])
  return namesOf(api, {
    groups: each('groups'),
    roles: each('roles'),
    repos: each('repos'),
    identities: each('identities'),
  })
}

function argumentOf({
  words: [one, many],
  called = `Name of the ${one}, GROUP/NAME if several ${many} have that name, or a uid`,
}: Pick<Resource, 'words' | 'called'>): ArgumentSpec {
  return { name: `<${one.replaceAll(' ', '-')}>`, key: 'which', summary: called }
}

/** The option that sets the field. */
export function optionOf(
  { flags, summary, required, list, map, choices, former }: Field,
  verb: 'create' | 'update' = 'create',
): OptionSpec {
  const repeat = list || map
  return {
    flags,
    summary,
    ...(required && verb === 'create' && { required }),
    ...(repeat && { repeat }),
    ...(choices && { choices }),
    ...(former && { former }),
  }
}

/** `find` for resources without a name: accepts only a uid. */
export async function onlyUid(_api: ApiReader, given: string): Promise<string> {
  if (isUid(given)) return given
  throw usageError(`${given} is not a uid, and this resource has no name; its list command shows uids with -o id`)
}

/** Reads a whole number from an option. The server checks its range. */
export function wholeNumber(flags: string): (api: ApiReader, given: string) => number {
  const [flag] = flags.split(' ')
  return (_, given) => {
    if (/^-?\d{1,15}$/.test(given)) return Number(given)
    throw usageError(`${flag} must be a whole number, not ${given}`)
  }
}
