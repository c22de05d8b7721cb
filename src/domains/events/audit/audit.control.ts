import type { Handlers } from '#app.ts'
import { type AuditFilter, auditFields } from '#domains/outbox/audit.model.ts'
import {
  AuditEntry_ActorKind as ActorKind,
  AuditActionSchema,
  AuditEntry_SentencePartSchema,
  type AuditEntry as AuditEntryMessage,
  AuditEntrySchema,
  AuditService,
  type ExportAuditEntriesRequest,
  type ListAuditEntriesRequest,
} from '#gen/pinfold/control/events/v1/audit_pb.ts'
import { getting, listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { readPage } from '#lib/lists/paging.ts'
import { toIso } from '#lib/timestamp.ts'
import { operatorUid, parentOf, top } from '#lib/uid.ts'
import * as service from './audit.service.ts'
import { csvHeader, csvLine, exportFormat, jsonLine, maxExported } from './audit-export.model.ts'
import type { DescribedEntry } from './audit-sentences.model.ts'

const rules = { fields: auditFields, defaultOrder: 'create_time desc' }
const toEntry = messageOf(AuditEntrySchema)
const toPart = messageOf(AuditEntry_SentencePartSchema)
const toAction = messageOf(AuditActionSchema)

export const audit: Handlers<typeof AuditService> = {
  getAuditEntry: getting(service.getAuditEntry, toMessage),
  listAuditEntries: listing(AuditService.method.listAuditEntries, rules, filterOf, service.listAuditEntries, toMessage),

  async listAuditActions(call) {
    return {
      $typeName: 'pinfold.control.events.v1.ListAuditActionsResponse',
      actions: service.listActions(call).map((one) => toAction(one)),
    }
  },

  async exportAuditEntries(call, request) {
    const format = exportFormat(request.format)
    const filter = filterOf(request)
    const asked = { pageToken: request.pageToken, pageSize: 0, orderBy: '', skip: 0 }
    const page = readPage(call, asked, rules, [request.group, format, filter])
    const { items, next } = await service.listForExport(call, request.group, { ...page, size: maxExported }, filter)
    const head = format === 'csv' && request.pageToken === '' ? csvHeader : ''
    const lines = items.map((entry) => (format === 'csv' ? csvLine(entry) : jsonLine(entry)))
    return {
      $typeName: 'pinfold.control.events.v1.ExportAuditEntriesResponse',
      content: head + lines.join(''),
      count: items.length,
      nextPageToken: next,
    }
  },
}

function filterOf(request: ListAuditEntriesRequest | ExportAuditEntriesRequest): AuditFilter {
  const { actor, subject, type, since, until } = request
  return { actor, subject, type, since: since ? toIso(since) : '', until: until ? toIso(until) : '' }
}

function toMessage(entry: DescribedEntry): AuditEntryMessage {
  const sentence = entry.sentence.map(({ text }) => text).join('')
  return toEntry({
    ...entry,
    group: parentOf(entry.uid),
    sentence,
    sentenceParts: entry.sentence.map((part) => toPart(part)),
    actorKind: kindOf(entry),
  })
}

function kindOf({ actor, remoteAddress }: DescribedEntry): ActorKind {
  if (actor === '') return remoteAddress === '' ? ActorKind.SERVER : ActorKind.ANONYMOUS
  if (actor === operatorUid) return ActorKind.OPERATOR
  return parentOf(actor) === top ? ActorKind.PERSON : ActorKind.SERVICE_ACCOUNT
}
