// Risks that somebody has accepted.
import { parseTimestamp, toIso } from '#lib/timestamp.ts'
import { findImage, imageNameOf } from '../registry/image-names.ts'
import { commonOptions, show } from '../registry/image-options.ts'
import { apiReader, callerOptions } from '../shape/api-pages.ts'
import type { ApiReader } from '../shape/api-reader.ts'
import {
  CliError,
  type Command,
  type CommandGroup,
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

type Risk = {
  uid: string
  vulnerability: string
  digest: string
  package: string
  reason: string
  expireTime: string
  actor: string
  state: string
}

const path = '/registry/v2/riskAcceptances'
const groupOption: OptionSpec = {
  flags: '--group <group>',
  summary: 'A group: its name as ORG or ORG/FOLDER, or its uid',
}
const imageOption: OptionSpec = { flags: '--image <image>', summary: 'A repository, such as acme/team/app' }

/** The uid of the group or the repository that an option names. */
async function placeOf(api: ApiReader, { group, image }: Options): Promise<string | undefined> {
  if (group !== undefined && image !== undefined) {
    throw new CliError(exitCodes.usage, 'give --group or --image, not both')
  }
  if (group !== undefined) return groupOf(api, String(group))
  if (image === undefined) return undefined
  return findImage(api, imageNameOf(String(image), registryOf(api.session)).path)
}

const list: Command = {
  name: 'list',
  summary: 'List the risks that are accepted',
  options: [groupOption, imageOption, { flags: '--ended', summary: 'Also those that have ended' }, ...commonOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const query = {
      scope_uid: await placeOf(api, options),
      include_ended: options.ended === true ? 'true' : undefined,
    }
    const { items, more } = await api.list<Risk>(path, 'riskAcceptances', query, limitOf(options))
    const actors = await actorsOf(
      api,
      items.map(({ actor }) => actor),
    )
    const rows = items.map((one) => [
      one.uid,
      one.vulnerability,
      [one.digest, one.package].filter(Boolean).join(' '),
      one.state.toLowerCase(),
      one.expireTime,
      actors.get(one.actor) ?? one.actor,
      one.reason,
    ])
    return show(
      terminal,
      options,
      { items },
      ['UID', 'VULNERABILITY', 'ONLY', 'STATE', 'UNTIL', 'BY', 'WHY'],
      rows,
      more,
    )
  },
}

const accept: Command = {
  name: 'accept',
  summary: 'Accept a vulnerability in a group or a repository, until a day',
  details: `Until then it does not count there in reports and counts. It is shown with who accepted it and why, and past reports
stay as they were.`,
  arguments: [{ name: '<vulnerability>', summary: 'Its CVE, or any other id that a source has for it' }],
  options: [
    groupOption,
    imageOption,
    { flags: '--reason <text>', summary: 'Why', required: true },
    { flags: '--until <time>', summary: 'A day such as 2026-12-31, or a time; at most 366 days ahead', required: true },
    { flags: '--digest <digest>', summary: 'Only in this image' },
    { flags: '--package <purl>', summary: 'Only in this package, such as pkg:apk/alpine/zlib' },
    outputOption,
    ...callerOptions,
  ],
  async run(terminal, options) {
    const expireTime = timeOf(String(options.until))
    const api = await apiReader(terminal, options)
    const place = await placeOf(api, options)
    if (place === undefined) throw new CliError(exitCodes.usage, 'say where, by --group or --image')
    const { vulnerability, reason, digest, package: purl } = options
    const made = (await api.call('POST', `${path}/${place}`, {
      ...{ vulnerability, reason, expireTime },
      ...(digest === undefined ? {} : { digest }),
      ...(purl === undefined ? {} : { package: purl }),
    })) as Risk
    return printOne(terminal, options, made, `accepted ${made.vulnerability} until ${made.expireTime}: ${made.uid}`)
  },
}

const revoke: Command = {
  name: 'revoke',
  summary: 'End the acceptance of a risk now',
  arguments: [{ name: '<uid>', summary: 'Of the acceptance, as list shows it' }],
  options: [{ flags: '--reason <text>', summary: 'Why' }, outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const made = (await api.call('POST', `${path}/${options.uid}:revoke`, { reason: options.reason ?? '' })) as Risk
    return printOne(terminal, options, made, `${made.vulnerability} counts again`)
  },
}

function printOne(terminal: Terminal, { output }: Options, risk: Risk, said: string): number {
  terminal.print(output === 'json' ? jsonText(risk, 2) : plain(said))
  return exitCodes.ok
}

function timeOf(text: string): string {
  const instant = parseTimestamp(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text)
  if (instant) return toIso(instant)
  throw new CliError(
    exitCodes.usage,
    '--until must be a day such as 2026-12-31, or a time such as 2026-12-31T12:00:00Z',
  )
}

export const vulnerabilitiesRisks: CommandGroup = {
  name: 'risks',
  summary: 'Risks that somebody has accepted',
  commands: [list, accept, revoke],
}
