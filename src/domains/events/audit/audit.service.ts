import type { Call } from '#app.ts'
import { listNodes } from '#domains/iam/groups/list-nodes.ts'
import { type AuditEntry, type AuditFilter, auditEntryType } from '#domains/outbox/audit.model.ts'
import * as store from '#domains/outbox/audit.store.ts'
import { type FieldViolation, found, refuseIfAny } from '#lib/errors.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { isUid } from '#lib/uid.ts'

export async function getAuditEntry(call: Call, uid: string): Promise<AuditEntry> {
  return found(await store.findEntry(call.app.db, uid), auditEntryType, uid)
}

/** Lists audit entries. The total is undefined if a filter matches more entries than the limit on counting. */
export async function listAuditEntries(
  call: Call,
  query: ListQuery<AuditFilter>,
): Promise<Listed<AuditEntry, number | undefined>> {
  checkFilter(query.filter)
  return listNodes(call, query, { list: store.listEntries, count: store.countEntries })
}

function checkFilter({ actor, subject, type }: AuditFilter): void {
  const problems: FieldViolation[] = []
  for (const [field, uid] of Object.entries({ actor, subject })) {
    if (uid !== '' && !isUid(uid)) problems.push({ field, description: 'is not a uid' })
  }
  if (type !== '' && !/^[a-z0-9_.]{1,255}$/.test(type)) {
    problems.push({ field: 'type', description: 'must be an event type, such as iam.roles.deleted' })
  }
  refuseIfAny(problems)
}
