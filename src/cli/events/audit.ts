// Command that lists the audit log.
import type { AuditEntryJson } from '#gen/pinfold/control/events/v1/audit_pb.ts'
import type { Query } from '../framework/api-reader.ts'
import { outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { findIdentity, groupOf, namesOf } from '../framework/names.ts'
import { sessionOptions } from '../framework/session.ts'
import { timeOf } from '../registry/image-options.ts'

/** Lists audit entries of the groups in which the caller can change role bindings, newest first. */
export const auditList = listCommand(
  {
    details: `Lists every change to groups, identities, roles, role bindings and policies. Owners of an organization can see its
entries. Times are RFC 3339, such as 2026-11-20T09:00:00Z, or days.`,
    options: [
      { flags: '--in <group>', summary: 'Only changes in this organization or folder: ORG, ORG/FOLDER or a uid' },
      { flags: '--by <identity>', summary: 'Only changes by this identity: its name, GROUP/NAME or uid' },
      { flags: '--resource <uid>', summary: 'Only changes of the resource with this uid' },
      { flags: '--type <type>', summary: 'Only changes with this event type, as the column TYPE shows it' },
      { flags: '--since <time>', summary: 'Only changes at this time or later' },
      { flags: '--until <time>', summary: 'Only changes before this time' },
      outputOption,
    ],
    async run(api, options) {
      const query: Query = {
        ...(options.in !== undefined && { 'uidp.descendants_of': await groupOf(api, String(options.in)) }),
        ...(options.by !== undefined && { actor: await findIdentity(api, String(options.by)) }),
        subject: options.resource as string | undefined,
        type: options.type as string | undefined,
        since: timeOf(options, '--since'),
        until: timeOf(options, '--until'),
      }
      const { items, more } = await api.selected<AuditEntryJson>('/events/v2/audit', 'auditEntries', query)
      if (options.output === 'json') return { json: { items }, more }
      const names = await namesOf(api, {
        groups: items.map(({ group = '/' }) => group).filter((group) => group !== '/'),
        identities: items.map(({ actor = '' }) => actor),
      })
      const rows = items.map(({ createTime, type, subject, group = '/', actor = '', remoteAddress }) => [
        createTime,
        type,
        subject,
        group === '/' ? '' : names.path(group),
        actor === '' ? 'not signed in' : names.of(actor),
        remoteAddress,
      ])
      return { head: ['TIME', 'TYPE', 'RESOURCE', 'IN', 'BY', 'ADDRESS'], rows, more }
    },
  },
  sessionOptions,
)
