import type { Handlers } from '#app.ts'
import { type AuditEntry, type AuditFilter, auditFields } from '#domains/outbox/audit.model.ts'
import type { AuditEntry as AuditEntryMessage, AuditService } from '#gen/pinfold/control/events/v1/audit_pb.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import { parentOf } from '#lib/uid.ts'
import * as service from './audit.service.ts'

const rules = { fields: auditFields, defaultOrder: 'create_time desc' }

export const audit: Handlers<typeof AuditService> = {
  async getAuditEntry(call, { uid }) {
    return toMessage(await service.getAuditEntry(call, uid))
  },

  async listAuditEntries(call, request) {
    const { actor, subject, type, since, until } = request
    const filter: AuditFilter = {
      actor,
      subject,
      type,
      since: since ? toIso(since) : '',
      until: until ? toIso(until) : '',
    }
    const listed = await service.listAuditEntries(call, readList(call, request, rules, filter))
    return listResponse(
      'pinfold.control.events.v1.ListAuditEntriesResponse',
      'auditEntries',
      listed,
      toMessage,
      request,
    )
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
