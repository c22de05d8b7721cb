// The place that a rule of any kind holds at, as an option; and what may have ended there.
import { isUid } from '#lib/uid.ts'
import { apiReader } from '../shape/api-pages.ts'
import type { ApiReader } from '../shape/api-reader.ts'
import { CliError, exitCodes, type OptionSpec, type Options, type Terminal } from '../shape/command.ts'
import { actorsOf, groupOf } from '../shape/names.ts'
import { jsonText, plain } from '../shape/plain-text.ts'
import { registryOf } from '../shape/session.ts'
import { limitOf } from '../shape/verbs.ts'
import { findImage, imageNameOf } from './image-names.ts'

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
