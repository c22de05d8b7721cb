import type { QuotaJson, QuotasJson } from '#gen/pinfold/control/quotas/v1/quotas_pb.ts'
import type { Row } from '#lib/terminal/plain-text.ts'
import { isUid } from '#lib/uid.ts'
import { failure, usageError } from '../framework/cli-error.ts'
import {
  type ArgumentSpec,
  type Commands,
  keyOf,
  type OptionSpec,
  type Options,
  outputOption,
} from '../framework/command.ts'
import { checkNamed } from '../framework/names.ts'
import { type OperatorApi, operatorDetails, operatorOptions } from '../framework/operator.ts'
import { operatorCommand, readingDetails } from './operator-command.ts'

type Organization = { uid: string; name: string }

const organizationArgument: ArgumentSpec = {
  name: '<organization>',
  summary: 'Organization: its name or its uid',
}
const header = ['QUOTA', 'USED', 'LIMIT', 'SET']

const rowOf = ({ name, limit, used, own }: QuotaJson): Row => {
  return [name, used ?? '-', limit ?? 'none', own ? 'for the organization' : 'by the settings']
}

async function quotasOf(api: OperatorApi, uid: string): Promise<QuotaJson[]> {
  return ((await api.get(`/iam/v2/quotas/${uid}`)) as QuotasJson).quotas ?? []
}

async function organizations(api: OperatorApi, query: Record<string, string> = {}): Promise<Organization[]> {
  return (await api.list<Organization>('/iam/v2/groups', 'groups', { ...query, 'uidp.in_root': 'true' })).items
}

async function uidOf(api: OperatorApi, given: string): Promise<string> {
  if (isUid(given)) return given
  checkNamed(given, 'organization')
  const [found] = await organizations(api, { name: given })
  if (found) return found.uid
  throw failure(`no organization ${given} was found; pinfold server quotas list lists all organizations`)
}

const list = operatorCommand({
  reads: true,
  details: readingDetails,
  options: [outputOption, ...operatorOptions],
  async run(api) {
    const all: (Organization & { quotas: QuotaJson[] })[] = []
    for (const { uid, name } of await organizations(api)) all.push({ uid, name, quotas: await quotasOf(api, uid) })
    const rows = all.flatMap(({ name, quotas }) => quotas.map((quota) => [name, ...rowOf(quota)]))
    return { json: all, head: ['ORGANIZATION', ...header], rows }
  },
})

const describe = operatorCommand({
  reads: true,
  details: readingDetails,
  arguments: [organizationArgument],
  options: [outputOption, ...operatorOptions],
  async run(api, options) {
    const quotas = await quotasOf(api, await uidOf(api, String(options.organization)))
    return { json: quotas, head: header, rows: quotas.map(rowOf) }
  },
})

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

const set = operatorCommand({
  served: true,
  details: `A limit is a number, none, or default for the value of the settings. An organization above a new limit keeps its data, but cannot add
more.
${operatorDetails}`,
  arguments: [organizationArgument],
  options: [...Object.values(settable), ...operatorOptions],
  check: (options) => void limitsOf(options),
  async run(api, options) {
    const organization = await uidOf(api, String(options.organization))
    await api.post('/control/v1/quotas:set', { organization, limits: limitsOf(options) })
    return { head: header, rows: (await quotasOf(api, organization)).map(rowOf) }
  },
})

function limitsOf(options: Options): { name: string; limit?: string }[] {
  const limits = Object.entries(settable).flatMap(([name, { flags }]) => {
    const given = options[keyOf(flags)]
    return given === undefined ? [] : [limitOf(name, String(given))]
  })
  if (limits.length === 0) throw usageError('nothing was changed: give at least one limit, such as --bytes 20GiB')
  return limits
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
