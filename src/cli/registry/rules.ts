// Helpers for rules of a group or a repository: their scope, the search by name, and commands that all kinds of rules have.
import type { GateExceptionJson } from '#gen/pinfold/control/scanning/v1/gates_pb.ts'
import type { Row } from '#lib/terminal/plain-text.ts'
import { isUid } from '#lib/uid.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { usageError } from '../framework/cli-error.ts'
import { type Command, type Commands, type OptionSpec, type Options, outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import {
  checkNamed,
  groupAbove,
  groupOf,
  type Kind,
  NameNotFound,
  namesOf,
  onlyOf,
  uidFrom,
  unlessNothing,
} from '../framework/names.ts'
import { registryOf } from '../framework/session.ts'
import { bodyOf, type Field, optionOf } from '../framework/verbs.ts'
import { findImageIfVisible, imageNamed } from './image-names.ts'
import { momentOf } from './image-options.ts'

/** Option `--in` for the scope of a rule. */
export const scopeOption: OptionSpec = {
  flags: '--in <scope>',
  summary: 'Organization, folder or repository: ORG, ORG/FOLDER, ORG/NAME or a uid',
  former: ['--group <group>', '--image <image>'],
  formerKey: 'scopeKind',
}

export const requiredScopeOption: OptionSpec = { ...scopeOption, required: true }

/** Uid of the group or the repository in `--in`. Undefined without the option. The former options named one of the two kinds. */
export async function scopeOf(api: ApiReader, options: Options): Promise<string | undefined> {
  if (options.in === undefined) return undefined
  const given = String(options.in)
  if (options.scopeKind === 'group') return groupOf(api, given)
  if (options.scopeKind === 'image') return (await imageNamed(api, given)).repo
  return scopeNamed(api, given)
}

/** Uid of a repository or a group from its path. Throws a usage error if a folder and a repository have the path. */
export async function scopeNamed(api: ApiReader, text: string): Promise<string> {
  const registry = `${registryOf(api.session)}/`
  const given = text.startsWith(registry) ? text.slice(registry.length) : text
  const repo = given.includes('/') ? await findImageIfVisible(api, given) : undefined
  if (repo !== undefined) {
    const folder = isUid(given) ? undefined : await groupOf(api, given).catch(unlessNothing)
    if (folder === undefined) return repo
    const next = `give the uid instead: ${folder} is the folder, ${repo} is the repository`
    throw usageError(`${given} is the path of a folder and of a repository\n${next}`)
  }
  return groupOf(api, given).catch((error: unknown) => {
    if (!(error instanceof NameNotFound && given.includes('/'))) throw error
    const hint = 'pinfold folders list and pinfold repos list show the folders and repositories that you can see'
    const why = 'it does not exist, or you do not have access to it'
    throw new NameNotFound(`no folder or repository ${given} was found: ${why}\n${hint}`)
  })
}

/** Maximum number of rules that are searched. An organization cannot have as many rules of one kind. */
const looked = 2000

/**
 * Finds a rule by its uid, its name, or its scope with a slash and its name. The API cannot search by name. Throws if several
 * rules have the name.
 */
export const ruleNamed =
  (kind: Kind) =>
  async (api: ApiReader, given: string): Promise<string> => {
    if (isUid(given)) return given
    const at = given.lastIndexOf('/')
    const wanted = given.slice(at + 1)
    // A rule may have no name, so an empty name must not find these rules.
    checkNamed(given, kind.words[0])
    const scope_uid = at < 0 ? undefined : await scopeNamed(api, given.slice(0, at))
    const { items } = await api.list<{ uid: string; name?: string }>(kind.path, kind.member, { scope_uid }, looked)
    const called = items.filter(({ name }) => name === wanted)
    return onlyOf(
      called.filter(({ uid }) => scope_uid === undefined || groupAbove(uid) === scope_uid),
      kind,
      given,
    )
  }

/** Converts a word of an option, such as `dry-run`, to the constant of the API. */
export const constant = (_: ApiReader, word: string): string => word.toUpperCase().replace('-', '_')

const flagsOf = (fields: readonly Field[]): string => fields.map(({ flags }) => flags.split(' ')[0]).join(', ')

type RuleKind<T> = Kind & {
  /** Noun for the policy in messages. */
  word: string
  fields: readonly Field[]
  head: readonly string[]
  rows(api: ApiReader, rules: readonly T[]): Promise<readonly Row[]>
  create: Pick<Command, 'details' | 'arguments'> & { check?(options: Options): void; usual?: object }
  update?: Pick<Command, 'details'>
}

export function ruleCommands<T>({ word, fields, head, rows, create, update, ...kind }: RuleKind<T>): Commands {
  const { path, member } = kind
  const which = { name: '<policy>', summary: 'Policy: its name, SCOPE/NAME if several have that name, or its uid' }
  const find = (api: ApiReader, options: Options) => ruleNamed(kind)(api, String(options.policy))
  const fieldsOf = (verb: 'create' | 'update') => fields.filter(({ only = verb }) => only === verb)
  const { check, usual, ...named } = create
  return {
    list: listCommand({
      options: [scopeOption, outputOption],
      async run(api, options) {
        const query = { scope_uid: await scopeOf(api, options) }
        const { items, more } = await api.selected<T>(path, member, query)
        return { json: { items }, head, rows: options.output === 'json' ? [] : await rows(api, items), more }
      },
    }),
    create: apiCommand({
      ...named,
      options: [requiredScopeOption, ...fieldsOf('create').map((field) => optionOf(field)), outputOption],
      async run(api, options) {
        check?.(options)
        const name = create.arguments && { name: options.name }
        const body = { ...usual, ...name, ...(await bodyOf(api, fieldsOf('create'), options)) }
        const made = await api.call('POST', `${path}/${await scopeOf(api, options)}`, body)
        return { json: made, text: `created the ${word} ${made.uid}` }
      },
    }),
    update: apiCommand({
      ...update,
      arguments: [which],
      options: [...fieldsOf('update').map((field) => optionOf(field, 'update')), outputOption],
      async run(api, options) {
        const body = await bodyOf(api, fieldsOf('update'), options)
        if (Object.keys(body).length === 0)
          throw usageError(`nothing was changed: give at least one of ${flagsOf(fieldsOf('update'))}`)
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

export const endedOption: OptionSpec = {
  flags: '--ended',
  summary: 'Include ended entries: expired, revoked or released ones',
}

/** Exemptions, accepted risks and trusted signers: resources with a reason and an expiry that a user can revoke earlier. */
type GrantKind<T> = {
  path: string
  member: string
  head: readonly string[]
  /** `by` is the name of the identity that created the item. */
  row(one: T, by: string): Row
}

export function listGrants<T extends { actor?: string }>({ path, member, head, row }: GrantKind<T>): Command {
  return listCommand({
    options: [scopeOption, endedOption, outputOption],
    async run(api, options) {
      const include_ended = options.ended === true ? 'true' : undefined
      const query = { scope_uid: await scopeOf(api, options), include_ended }
      const { items, more } = await api.selected<T>(path, member, query)
      const names = await namesOf(api, { identities: items.map(({ actor = '' }) => actor) })
      return { json: { items }, head, rows: items.map((one) => row(one, names.of(one.actor ?? ''))), more }
    },
  })
}

/** Options for the reason and the expiry. `days` is the maximum time until the expiry. */
export const untilOptions = (days: number): readonly OptionSpec[] => [
  { flags: '--reason <text>', summary: 'Reason', required: true },
  {
    flags: '--until <time>',
    summary: `End: a date such as 2026-12-31, or a time such as 2026-12-31T12:00:00Z; at most ${days} days ahead`,
    required: true,
  },
]

export const untilOf = ({ until }: Options): string => momentOf(String(until), '--until')

/**
 * Creates the command that revokes an item. `list` is the command that shows uids. With `reason`, the command has an option for
 * the reason. `text` is printed after the revocation.
 */
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
    options: [...(reason ? [{ flags: '--reason <text>', summary: 'Reason' }] : []), outputOption],
    async run(api, options) {
      const uid = uidFrom(options.uid, `${list} lists the uids`)
      const body = reason ? { reason: options.reason ?? '' } : {}
      const ended = await api.call('POST', `${path}/${uid}:revoke`, body)
      return { json: ended, text: await text(ended as T, api) }
    },
  })
}

/**
 * Commands for exemptions from rules of one kind. `command` is their command group, and `days` is the maximum time until the
 * expiry.
 */
export function exceptionCommands(kind: { path: string; member: string; days: number; command: string }): Commands {
  return {
    'exemptions list': listGrants<GateExceptionJson>({
      ...kind,
      head: ['UID', 'DIGEST', 'UNTIL', 'BY', 'REASON'],
      row: (one, by) => [one.uid, one.digest, one.revokeTime ?? one.expireTime, by, one.reason],
    }),
    'exemptions create': apiCommand({
      arguments: [{ name: '<digest>', summary: 'Digest of the image or the index: sha256:…' }],
      options: [requiredScopeOption, ...untilOptions(kind.days), outputOption],
      check: untilOf,
      async run(api, options) {
        const { digest, reason } = options
        const body = { digest, reason, expireTime: untilOf(options) }
        const made = await api.call('POST', `${kind.path}/${await scopeOf(api, options)}`, body)
        return { json: made, text: `${made.digest} is exempt until ${made.expireTime}: ${made.uid}` }
      },
    }),
    'exemptions revoke': endGrant<GateExceptionJson>(kind, {
      list: `${kind.command} exemptions list`,
      argument: `Uid of the exemption, as ${kind.command} exemptions list shows it`,
      text: ({ digest }) => `${digest} is no longer exempt`,
    }),
  }
}
