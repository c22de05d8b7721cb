import type { Handlers } from '#app.ts'
import { type AuditEntry, auditFields } from '#domains/outbox/audit.model.ts'
import {
  type AuditEntry as AuditEntryMessage,
  AuditEntrySchema,
  AuditService,
} from '#gen/pinfold/control/events/v1/audit_pb.ts'
import { getting, listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { toIso } from '#lib/timestamp.ts'
import { parentOf } from '#lib/uid.ts'
import * as service from './audit.service.ts'

const rules = { fields: auditFields, defaultOrder: 'create_time desc' }
const toEntry = messageOf(AuditEntrySchema)

export const audit: Handlers<typeof AuditService> = {
  getAuditEntry: getting(service.getAuditEntry, toMessage),
  listAuditEntries: listing(
    AuditService.method.listAuditEntries,
    rules,
    ({ actor, subject, type, since, until }) => {
      return { actor, subject, type, since: since ? toIso(since) : '', until: until ? toIso(until) : '' }
    },
    service.listAuditEntries,
    toMessage,
  ),
}

function toMessage(entry: AuditEntry): AuditEntryMessage {
  return toEntry({ ...entry, group: parentOf(entry.uid) })
}
