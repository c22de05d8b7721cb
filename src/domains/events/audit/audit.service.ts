import type { Call } from '#app.ts'
import { listNodes } from '#domains/iam/groups/list-nodes.ts'
import {
  type AuditEntry,
  type AuditFilter,
  auditEntryType,
  type EntryNames,
  parseNames,
} from '#domains/outbox/audit.model.ts'
import * as store from '#domains/outbox/audit.store.ts'
import { organizationOf, readNames, uidsOf } from '#domains/outbox/audit-names.service.ts'
import { entryTypeOf } from '#domains/outbox/emit.ts'
import { type FieldViolation, found, refuseIfAny } from '#lib/errors.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import { compareTexts, type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import { isUid, parentOf } from '#lib/uid.ts'
import { type AuditAction, type DescribedEntry, sentenceOf } from './audit-sentences.model.ts'
import { templates } from './audit-templates.model.ts'

export async function getAuditEntry(call: Call, uid: string): Promise<DescribedEntry> {
  const entry = found(await store.findEntry(call.app.db, uid), auditEntryType, uid)
  return (await described(call, [entry]))[0]!
}

/** Lists audit entries. The total is undefined if a filter matches more entries than the limit on counting. */
export async function listAuditEntries(
  call: Call,
  query: ListQuery<AuditFilter>,
): Promise<Listed<DescribedEntry, number | undefined>> {
  checkFilter(query.filter)
  const listed = await listNodes(call, query, { list: store.listEntries, count: store.countEntries })
  return { ...listed, items: await described(call, listed.items) }
}

/** Lists the entries of a group and below it for an export. */
export async function listForExport(
  call: Call,
  group: string,
  page: Page,
  filter: AuditFilter,
): Promise<Listed<DescribedEntry>> {
  checkFilter(filter)
  const rows = await store.listEntries(call.app.db, [{ below: group }], page, filter)
  const listed = toListed(call, page, rows, 0)
  return { ...listed, items: await described(call, listed.items) }
}

/** All actions that the audit log records, by area and title. Empty for callers who cannot read an audit log. */
export function listActions({ reach }: Pick<Call, 'reach'>): AuditAction[] {
  if (reach.length === 0) return []
  return Object.entries(templates)
    .map(([name, { title, area }]) => ({ type: entryTypeOf(name), title, area }))
    .sort((a, b) => compareTexts(`${a.area} ${a.title}`, `${b.area} ${b.title}`))
}

/** Adds sentences. Reads the present names of all entries of an organization together. */
async function described({ app }: Call, entries: readonly AuditEntry[]): Promise<DescribedEntry[]> {
  const present = new Map<string, EntryNames>()
  const placed = entries.map((entry) => ({ ...entry, group: parentOf(entry.uid) }))
  for (const [organization, some] of Map.groupBy(placed, organizationOf)) {
    const uids = new Set(some.flatMap((entry) => [...uidsOf(entry), ...Object.keys(parseNames(entry.names))]))
    present.set(organization, await readNames(app.db, app, organization, [...uids]))
  }
  return placed.map(({ group, ...entry }) => {
    return { ...entry, sentence: sentenceOf(entry, present.get(organizationOf({ ...entry, group })) ?? {}) }
  })
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
