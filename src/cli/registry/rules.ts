// Rules of a group or a repository: their scope, their names, and the commands that all kinds of rules have.
import { isUid } from '#lib/uid.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { usageError } from '../framework/cli-error.ts'
import { type Command, type Commands, type OptionSpec, type Options, outputOption } from '../framework/command.ts'
import { actorsOf, checkNamed, groupAbove, groupOf, type Kind, NothingNamed, onlyOf } from '../framework/names.ts'
import { registryOf } from '../framework/session.ts'
import { bodyOf, type Field, limitOf, limitOption, optionOf } from '../framework/verbs.ts'
import { findImage, imageNameOf, lookForImage } from './image-names.ts'
import { momentOf } from './image-options.ts'

export const placeOptions: readonly OptionSpec[] = [
  { flags: '--group <group>', summary: 'A group: its name as ORG or ORG/FOLDER, or its uid' },
  { flags: '--image <image>', summary: 'A repository, such as acme/team/app' },
]

/** The uid of the group or the repository that an option names. */
export async function placeOf(api: ApiReader, { group, image }: Options): Promise<string | undefined> {
  if (group !== undefined && image !== undefined) {
    throw usageError('give --group or --image, not both')
  }
  if (group !== undefined) return groupOf(api, String(group))
  if (image === undefined) return undefined
  return findImage(api, imageNameOf(String(image), registryOf(api.session)).path)
}

export async function requiredPlaceOf(api: ApiReader, options: Options): Promise<string> {
  const place = await placeOf(api, options)
  if (place === undefined) throw usageError('say where, by --group or --image')
  return place
}

/** The uid of a repository or of a group. */
export async function placeNamed(api: ApiReader, given: string): Promise<string> {
  const repo = given.includes('/') ? await lookForImage(api, given) : undefined
  if (repo !== undefined) return repo
  return groupOf(api, given).catch((error: unknown) => {
    if (!(error instanceof NothingNamed && given.includes('/'))) throw error
    const hint = 'pinfold iam folders list and pinfold images repos list show those that there are'
    throw new NothingNamed(`there is no folder or repository ${given} that you can see\n${hint}`)
  })
}

/** More rules of one kind than an organization can have. */
const looked = 2000

/**
 * Finds a rule by its uid, its name, or its scope and its name. The API has no search by name, and rules may have the same name.
 */
export const ruleNamed =
  (kind: Kind) =>
  async (api: ApiReader, given: string): Promise<string> => {
    if (isUid(given)) return given
    const at = given.lastIndexOf('/')
    const wanted = given.slice(at + 1)
    // A rule need not have a name.
    checkNamed(given, kind.words[0])
    const scope_uid = at < 0 ? undefined : await placeNamed(api, given.slice(0, at))
    const { items } = await api.list<{ uid: string; name?: string }>(kind.path, kind.member, { scope_uid }, looked)
    const called = items.filter(({ name }) => name === wanted)
    return onlyOf(
      called.filter(({ uid }) => scope_uid === undefined || groupAbove(uid) === scope_uid),
      kind,
      given,
    )
  }

type RuleKind<T> = Kind & {
  /** A rule in messages, and the argument that names one. */
  word: string
  fields: readonly Field[]
  head: readonly string[]
  rows(api: ApiReader, rules: readonly T[]): Promise<readonly (readonly string[])[]>
  create: Pick<Command, 'details' | 'arguments'> & { check?(options: Options): void; usual?: object }
  update?: Pick<Command, 'details'>
}

export function ruleCommands<T>({ word, fields, head, rows, create, update, ...kind }: RuleKind<T>): Commands {
  const { path, member } = kind
  const which = { name: `<${word}>`, summary: 'Its name, GROUP/NAME where several have that name, or its uid' }
  const find = (api: ApiReader, options: Options) => ruleNamed(kind)(api, String(options[word]))
  const fieldsOf = (verb: 'create' | 'update') => fields.filter(({ only = verb }) => only === verb)
  const { check, usual, ...named } = create
  return {
    list: apiCommand({
      options: [...placeOptions, limitOption, outputOption],
      async run(api, options) {
        const query = { scope_uid: await placeOf(api, options) }
        const { items, more } = await api.list<T>(path, member, query, limitOf(options))
        return { json: { items }, head, rows: options.output === 'json' ? [] : await rows(api, items), more }
      },
    }),
    create: apiCommand({
      ...named,
      options: [...placeOptions, ...fieldsOf('create').map((field) => optionOf(field)), outputOption],
      async run(api, options) {
        check?.(options)
        const name = create.arguments && { name: options.name }
        const body = { ...usual, ...name, ...(await bodyOf(api, fieldsOf('create'), options)) }
        const made = await api.call('POST', `${path}/${await requiredPlaceOf(api, options)}`, body)
        return { json: made, text: `made the ${word} ${made.uid}` }
      },
    }),
    update: apiCommand({
      ...update,
      arguments: [which],
      options: [...fieldsOf('update').map((field) => optionOf(field, 'update')), outputOption],
      async run(api, options) {
        const body = await bodyOf(api, fieldsOf('update'), options)
        if (Object.keys(body).length === 0) throw usageError('say what to change')
        const made = await api.call('PATCH', `${path}/${await find(api, options)}`, body)
        return { json: made, text: `changed the ${word} ${made.uid}` }
      },
    }),
    delete: apiCommand({
      arguments: [which],
      options: [],
      async run(api, options) {
        const uid = await find(api, options)
        await api.call('DELETE', `${path}/${uid}`)
        return { text: `deleted the ${word} ${uid}` }
      },
    }),
  }
}

export const endedOption: OptionSpec = { flags: '--ended', summary: 'Also those that have ended' }

/** Permissions that end on a day or by a decision: exceptions, accepted risks and trusted signers. */
type GrantKind<T> = {
  path: string
  member: string
  head: readonly string[]
  /** `by` is the name of the identity that created it. */
  row(one: T, by: string): readonly string[]
}

export function listGrants<T extends { actor: string }>({ path, member, head, row }: GrantKind<T>): Command {
  return apiCommand({
    options: [...placeOptions, endedOption, limitOption, outputOption],
    async run(api, options) {
      const include_ended = options.ended === true ? 'true' : undefined
      const query = { scope_uid: await placeOf(api, options), include_ended }
      const { items, more } = await api.list<T>(path, member, query, limitOf(options))
      const actors = await actorsOf(
        api,
        items.map(({ actor }) => actor),
      )
      return { json: { items }, head, rows: items.map((one) => row(one, actors.get(one.actor) ?? one.actor)), more }
    },
  })
}

/** The options of a grant; `days` is the longest time. */
export const untilOptions = (days: number): readonly OptionSpec[] => [
  { flags: '--reason <text>', summary: 'Why', required: true },
  {
    flags: '--until <time>',
    summary: `A day such as 2026-12-31, or a time; at most ${days} days ahead`,
    required: true,
  },
]

export const untilOf = ({ until }: Options): string => momentOf(String(until), '--until')

/** Ends a grant. `list` is the command that shows uids, and `bodyFrom` returns the body of the request. */
export function endGrant<T>(
  { path }: Pick<GrantKind<T>, 'path'>,
  {
    list,
    argument,
    reason = false,
    text,
  }: {
    list: string
    argument: string
    reason?: boolean
    text(ended: T, api: ApiReader): string | Promise<string>
  },
): Command {
  return apiCommand({
    arguments: [{ name: '<uid>', summary: argument }],
    options: [...(reason ? [{ flags: '--reason <text>', summary: 'Why' }] : []), outputOption],
    async run(api, options) {
      const uid = String(options.uid)
      if (!isUid(uid)) throw usageError(`${uid} is no uid; ${list} shows those that there are`)
      const body = reason ? { reason: options.reason ?? '' } : {}
      const ended = await api.call('POST', `${path}/${uid}:revoke`, body)
      return { json: ended, text: await text(ended as T, api) }
    },
  })
}

type Exception = { uid: string; digest: string; reason: string; expireTime: string; actor: string; revokeTime?: string }

/** Exceptions from the rules of one kind. `command` is the group of commands that they are in, `days` the longest time. */
export function exceptionCommands(kind: { path: string; member: string; days: number; command: string }): Commands {
  return {
    exceptions: listGrants<Exception>({
      ...kind,
      head: ['UID', 'DIGEST', 'UNTIL', 'BY', 'WHY'],
      row: (one, by) => [one.uid, one.digest, one.revokeTime ?? one.expireTime, by, one.reason],
    }),
    except: apiCommand({
      arguments: [{ name: '<digest>', summary: 'Of the image or the index' }],
      options: [...placeOptions, ...untilOptions(kind.days), outputOption],
      check: untilOf,
      async run(api, options) {
        const { digest, reason } = options
        const body = { digest, reason, expireTime: untilOf(options) }
        const made = await api.call('POST', `${kind.path}/${await requiredPlaceOf(api, options)}`, body)
        return { json: made, text: `${made.digest} passes until ${made.expireTime}: ${made.uid}` }
      },
    }),
    revoke: endGrant<Exception>(kind, {
      list: `${kind.command} exceptions`,
      argument: 'Of the exception, as exceptions shows it',
      text: ({ digest }) => `${digest} passes no more`,
    }),
  }
}
