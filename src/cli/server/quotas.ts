import { isUid } from '#lib/uid.ts'
import { exitCodes, failure, usageError } from '../framework/cli-error.ts'
import { type ArgumentSpec, type Command, type Commands, type OptionSpec, outputOption } from '../framework/command.ts'
import { checkNamed } from '../framework/names.ts'
import { type OperatorApi, operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { jsonText, table } from '../framework/plain-text.ts'
import { readingDetails, withReadingOperator } from './reading-operator.ts'

type Quota = { name: string; limit?: string; used?: string; own?: boolean }
type Organization = { uid: string; name: string }

const organizationArgument: ArgumentSpec = {
  name: '<organization>',
  summary: 'Organization: its name or its uid',
}
const header = ['QUOTA', 'USED', 'LIMIT', 'SET']

const rowOf = ({ name, limit, used, own }: Quota): string[] => {
  return [name, used ?? '-', limit ?? 'none', own ? 'for the organization' : 'by the settings']
}

async function quotasOf(api: OperatorApi, uid: string): Promise<Quota[]> {
  return (await api.get(`/iam/v2/quotas/${uid}`)).quotas as Quota[]
}

async function* organizations(api: OperatorApi, query: Record<string, string> = {}): AsyncGenerator<Organization> {
  for (let page = ''; ; ) {
    const asked = new URLSearchParams({ ...query, 'uidp.in_root': 'true', page_size: '200', page_token: page })
    const answer = await api.get(`/iam/v2/groups?${asked}`)
    yield* (answer.groups ?? []) as Organization[]
    page = String(answer.nextPageToken ?? '')
    if (page === '') return
  }
}

async function uidOf(api: OperatorApi, given: string): Promise<string> {
  if (isUid(given)) return given
  checkNamed(given, 'organization')
  for await (const { uid } of organizations(api, { name: given })) return uid
  throw failure(`no organization ${given} was found; pinfold server quotas list lists all organizations`)
}

const list: Command = {
  details: readingDetails,
  options: [outputOption, ...operatorOptions],
  async run(terminal, options) {
    return withReadingOperator(terminal, options, async (api) => {
      const all: (Organization & { quotas: Quota[] })[] = []
      for await (const { uid, name } of organizations(api)) all.push({ uid, name, quotas: await quotasOf(api, uid) })
      const rows = all.flatMap(({ name, quotas }) => quotas.map((quota) => [name, ...rowOf(quota)]))
      if (options.output === 'json') terminal.print(jsonText(all, 2))
      else for (const line of table([['ORGANIZATION', ...header], ...rows])) terminal.print(line)
      return exitCodes.ok
    })
  },
}

const describe: Command = {
  details: readingDetails,
  arguments: [organizationArgument],
  options: [outputOption, ...operatorOptions],
  async run(terminal, options) {
    return withReadingOperator(terminal, options, async (api) => {
      const quotas = await quotasOf(api, await uidOf(api, String(options.organization)))
      if (options.output === 'json') terminal.print(jsonText(quotas, 2))
      else for (const line of table([header, ...quotas.map(rowOf)])) terminal.print(line)
      return exitCodes.ok
    })
  },
}

const settable: Record<string, OptionSpec> = {
  bytes: { flags: '--bytes <limit>', summary: 'Maximum storage in bytes, or such as 500MiB, 20GiB or 2TiB' },
  repositories: { flags: '--repositories <limit>', summary: 'Maximum number of repositories' },
  groups: { flags: '--groups <limit>', summary: 'Maximum number of folders' },
  uploads: { flags: '--uploads <limit>', summary: 'Maximum number of open uploads' },
  upload_pieces: { flags: '--upload-pieces <limit>', summary: 'Maximum number of pieces in one upload' },
  subscriptions: { flags: '--subscriptions <limit>', summary: 'Maximum number of webhooks' },
  sink_subscriptions: {
    flags: '--sink-subscriptions <limit>',
    summary: 'Maximum number of webhooks with the same URL',
  },
  pending_deliveries: { flags: '--pending-deliveries <limit>', summary: 'Maximum number of waiting deliveries' },
}

const set: Command = {
  details: `A limit is a number, none, or default for the value of the settings. An organization above a new limit keeps its data, but cannot add
more.
${operatorDetails}`,
  arguments: [organizationArgument],
  options: [...Object.values(settable), ...operatorOptions],
  async run(terminal, options) {
    const limits = Object.keys(settable).flatMap((name) => {
      const given = options[name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())]
      return given === undefined ? [] : [limitOf(name, String(given))]
    })
    if (limits.length === 0) throw usageError('nothing was changed: give at least one limit, such as --bytes 20GiB')
    return withOperator(
      terminal,
      options,
      async (api) => {
        const organization = await uidOf(api, String(options.organization))
        await api.post('/control/v1/quotas:set', { organization, limits })
        for (const line of table([header, ...(await quotasOf(api, organization)).map(rowOf)])) terminal.print(line)
        return exitCodes.ok
      },
      { served: true },
    )
  },
}

function limitOf(name: string, given: string): { name: string; limit?: string } {
  if (given === 'default') return { name }
  if (given === 'none') return { name, limit: '0' }
  const match = /^(\d{1,15})(?:(K|M|G|T)iB)?$/.exec(given)
  const limit = match && Number(match[1]) * 1024 ** (match[2] === undefined ? 0 : ' KMGT'.indexOf(match[2]))
  if (!limit || !Number.isSafeInteger(limit) || (match[2] !== undefined && name !== 'bytes')) {
    const size = name === 'bytes' ? 'a size such as 500MiB, 20GiB or 2TiB, ' : ''
    throw usageError(`--${name.replaceAll('_', '-')} must be a number above 0, ${size}none or default`)
  }
  return { name, limit: String(limit) }
}

export const quotas: Commands = { list, describe, set }
