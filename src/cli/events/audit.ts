// Commands that list and export the audit log.
import type { AuditEntryJson, ExportAuditEntriesResponseJson } from '#gen/pinfold/control/events/v1/audit_pb.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { type ApiReader, pathOf, type Query } from '../framework/api-reader.ts'
import { type OptionSpec, type Options, outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { findIdentity, groupOf } from '../framework/names.ts'
import { sessionOptions } from '../framework/session.ts'
import { timeOf } from '../registry/image-options.ts'

const filterOptions: readonly OptionSpec[] = [
  { flags: '--by <identity>', summary: 'Only changes by this identity: its name, GROUP/NAME or uid' },
  { flags: '--resource <uid>', summary: 'Only changes of the resource with this uid' },
  { flags: '--type <type>', summary: 'Only changes with this event type, as -o json shows it' },
  { flags: '--since <time>', summary: 'Only changes at this time or later' },
  { flags: '--until <time>', summary: 'Only changes before this time' },
]

async function filterOf(api: ApiReader, options: Options): Promise<Query> {
  return {
    ...(options.by !== undefined && { actor: await findIdentity(api, String(options.by)) }),
    subject: options.resource as string | undefined,
    type: options.type as string | undefined,
    since: timeOf(options, '--since'),
    until: timeOf(options, '--until'),
  }
}

const times = 'Times are RFC 3339, such as 2026-11-20T09:00:00Z, or days.'

/** Lists audit entries of the groups in which the caller can read the audit log, newest first. */
export const auditList = listCommand(
  {
    details: `Lists every change to groups, identities, roles, role bindings and policies. Owners and auditors of an organization
can see its entries. ${times}`,
    options: [
      { flags: '--in <group>', summary: 'Only changes in this organization or folder: ORG, ORG/FOLDER or a uid' },
      ...filterOptions,
      outputOption,
    ],
    async run(api, options) {
      const query: Query = {
        ...(options.in !== undefined && { 'uidp.descendants_of': await groupOf(api, String(options.in)) }),
        ...(await filterOf(api, options)),
      }
      const { items, more } = await api.selected<AuditEntryJson>('/events/v2/audit', 'auditEntries', query)
      if (options.output === 'json') return { json: { items }, more }
      const rows = items.map(({ createTime, sentence, remoteAddress }) => [createTime, sentence, remoteAddress])
      return { head: ['TIME', 'CHANGE', 'ADDRESS'], rows, more }
    },
  },
  sessionOptions,
)

/** Prints the audit entries of a group as CSV or JSON lines. */
export const auditExport = apiCommand(
  {
    details: `Prints every matching entry, newest first. In CSV, a cell that a spreadsheet could read as a formula begins with an
apostrophe. ${times} Example: pinfold audit export --in acme --since 2026-11-01 --format csv > audit.csv`,
    options: [
      { flags: '--in <group>', summary: 'Organization or folder: ORG, ORG/FOLDER or a uid', required: true },
      {
        flags: '--format <format>',
        summary: 'Format of the export; jsonl has one JSON object in each line; default: csv',
        choices: ['csv', 'jsonl'],
      },
      ...filterOptions,
    ],
    async run(api, options, terminal) {
      const group = await groupOf(api, String(options.in))
      const query = { ...(await filterOf(api, options)), format: String(options.format ?? 'csv') }
      let token = ''
      do {
        const answer = await api.call(
          'GET',
          pathOf(`/control/v1/auditExport/${group}`, { ...query, page_token: token }),
        )
        const { content = '', nextPageToken = '' } = answer as ExportAuditEntriesResponseJson
        if (content !== '') terminal.print(content.replace(/\r?\n$/, ''))
        token = nextPageToken
      } while (token !== '')
      return undefined
    },
  },
  sessionOptions,
)
