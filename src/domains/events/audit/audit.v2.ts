import type { Handlers } from '#app.ts'
import type { AuditEntry as AuditEntryMessage, AuditService } from '#gen/pinfold/control/events/v1/audit_pb.ts'
import { readPage } from '#lib/paging.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import { parentOf } from '#lib/uid.ts'
import { type AuditEntry, type AuditFilter, auditFields } from './audit.model.ts'
import * as service from './audit.service.ts'

export const audit: Handlers<typeof AuditService> = {
  async getAuditEntry(call, { uid }) {
    return toMessage(await service.getAuditEntry(call, uid))
  },

  async listAuditEntries(call, request) {
    const { uidp, actor, subject, type, since, until } = request
    const filter: AuditFilter = {
      actor,
      subject,
      type,
      since: since ? toIso(since) : '',
      until: until ? toIso(until) : '',
    }
    const rules = { fields: auditFields, defaultOrder: 'create_time desc' }
    const page = readPage(call, request, rules, [uidp, filter])
    const listed = await service.listAuditEntries(call, uidp, page, filter)
    return {
      $typeName: 'pinfold.control.events.v1.ListAuditEntriesResponse',
      auditEntries: listed.items.map(toMessage),
      nextPageToken: listed.next,
      ...(listed.total === undefined ? {} : { totalCount: BigInt(listed.total) }),
      skipped: request.skip,
    }
  },
}

function toMessage({ createTime, ...entry }: AuditEntry): AuditEntryMessage {
  return {
    $typeName: 'pinfold.control.events.v1.AuditEntry',
    ...entry,
    group: parentOf(entry.uid),
    createTime: timestamp(createTime),
  }
}
