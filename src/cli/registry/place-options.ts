// The place that a rule of any kind holds at, as an option; what may have ended there; and what lets a digest through.
import { isUid } from '#lib/uid.ts'
import { apiReader, callerOptions } from '../shape/api-pages.ts'
import type { ApiReader } from '../shape/api-reader.ts'
import {
  CliError,
  type Command,
  type Commands,
  exitCodes,
  type OptionSpec,
  type Options,
  outputOption,
  type Terminal,
} from '../shape/command.ts'
import { actorsOf, groupOf } from '../shape/names.ts'
import { jsonText, plain } from '../shape/plain-text.ts'
import { registryOf } from '../shape/session.ts'
import { limitOf } from '../shape/verbs.ts'
import { findImage, imageNameOf } from './image-names.ts'
import { commonOptions, momentOf, show } from './image-options.ts'

export const placeOptions: readonly OptionSpec[] = [
  { flags: '--group <group>', summary: 'A group: its name as ORG or ORG/FOLDER, or its uid' },
  { flags: '--image <image>', summary: 'A repository, such as acme/team/app' },
]

/** The uid of the group or the repository that an option names. */
export async function placeOf(api: ApiReader, { group, image }: Options): Promise<string | undefined> {
  if (group !== undefined && image !== undefined) {
    throw new CliError(exitCodes.usage, 'give --group or --image, not both')
  }
  if (group !== undefined) return groupOf(api, String(group))
  if (image === undefined) return undefined
  return findImage(api, imageNameOf(String(image), registryOf(api.session)).path)
}

export async function requiredPlaceOf(api: ApiReader, options: Options): Promise<string> {
  const place = await placeOf(api, options)
  if (place === undefined) throw new CliError(exitCodes.usage, 'say where, by --group or --image')
  return place
}

/** The uid that the argument gives; `list` is the command that shows those that there are. */
export function givenUid({ uid }: Options, list: string): string {
  if (isUid(String(uid))) return String(uid)
  throw new CliError(exitCodes.usage, `${uid} is no uid; ${list} shows those that there are`)
}

export const endedOption: OptionSpec = { flags: '--ended', summary: 'Also those that have ended' }

/** What somebody has made at a place and below, with the names of those who have. */
export async function listMade<T extends { actor: string }>(
  terminal: Terminal,
  options: Options,
  { path, member }: { path: string; member: string },
): Promise<{ items: T[]; more: boolean; madeBy: (one: T) => string }> {
  const api = await apiReader(terminal, options)
  const include_ended = options.ended === true ? 'true' : undefined
  const query = { scope_uid: await placeOf(api, options), include_ended }
  const { items, more } = await api.list<T>(path, member, query, limitOf(options))
  const actors = await actorsOf(
    api,
    items.map(({ actor }) => actor),
  )
  return { items, more, madeBy: ({ actor }) => actors.get(actor) ?? actor }
}

/** What was made or changed: all of it as JSON, else in a sentence. */
export function printMade(terminal: Terminal, { output }: Options, made: object, said: string): number {
  terminal.print(output === 'json' ? jsonText(made, 2) : plain(said))
  return exitCodes.ok
}

type Exception = { uid: string; digest: string; reason: string; expireTime: string; actor: string; revokeTime?: string }

/** Commands of exceptions from rules; `command` is the group that they are in. */
export function exceptionCommands(about: { path: string; member: string; days: number; command: string }): Commands {
  return { exceptions: listOf(about), except: except(about), revoke: revoke(about) }
}

type About = Parameters<typeof exceptionCommands>[0]

const listOf = ({ path, member }: About): Command => ({
  options: [...placeOptions, endedOption, ...commonOptions],
  async run(terminal, options) {
    const { items, more, madeBy } = await listMade<Exception>(terminal, options, { path, member })
    const rows = items.map((one) => [one.uid, one.digest, one.revokeTime ?? one.expireTime, madeBy(one), one.reason])
    return show(terminal, options, { items }, ['UID', 'DIGEST', 'UNTIL', 'BY', 'WHY'], rows, more)
  },
})

const except = ({ path, days }: About): Command => ({
  arguments: [{ name: '<digest>', summary: 'Of the image or the index' }],
  options: [
    ...placeOptions,
    { flags: '--reason <text>', summary: 'Why', required: true },
    {
      flags: '--until <time>',
      summary: `A day such as 2026-12-31, or a time; at most ${days} days ahead`,
      required: true,
    },
    outputOption,
    ...callerOptions,
  ],
  async run(terminal, options) {
    const expireTime = momentOf(String(options.until), '--until')
    const api = await apiReader(terminal, options)
    const { digest, reason } = options
    const at = `${path}/${await requiredPlaceOf(api, options)}`
    const made = (await api.call('POST', at, { digest, reason, expireTime })) as Exception
    return printMade(terminal, options, made, `${made.digest} passes until ${made.expireTime}: ${made.uid}`)
  },
})

const revoke = ({ path, command }: About): Command => ({
  arguments: [{ name: '<uid>', summary: 'Of the exception, as exceptions shows it' }],
  options: [outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const uid = givenUid(options, `${command} exceptions`)
    const made = (await api.call('POST', `${path}/${uid}:revoke`, {})) as Exception
    return printMade(terminal, options, made, `${made.digest} passes no more`)
  },
})
