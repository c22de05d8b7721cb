import { countRows } from '#db/bulk.ts'
import { ident, list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Page } from '#lib/lists/paging.ts'
import type { TermsAcceptance } from './terms.model.ts'

const uid = sql`(t.group_uid || ' ' || t.doc_id)`
const columns = sql`
  ${uid} AS uid, t.doc_id AS "docId", t.accepted_by AS "acceptedBy", t.group_uid AS "orgUid", t.create_time AS "createTime"`

/**
 * Acceptances for these groups. Returns up to one row more than the page, which shows that there is a next page. The rows are
 * few: at most ten levels of groups, each with one acceptance for each document.
 */
export function listAcceptances(reader: Reader, groups: readonly string[], page: Page): Promise<TermsAcceptance[]> {
  const column = ident(`t.${page.order.column}`)
  const dir = page.order.desc ? sql`DESC` : sql`ASC`
  return reader.all(sql`
    SELECT ${columns} FROM terms_acceptances t
     WHERE t.group_uid IN (${list(groups)}) AND ${after(page, column)}
     ORDER BY ${column} ${dir}, ${uid} ${dir}
     LIMIT ${page.size + 1} OFFSET ${page.skip}`)
}

function after({ order, after: last }: Page, column: Sql): Sql {
  if (!last) return sql`1 = 1`
  return sql`(${column}, ${uid}) ${order.desc ? sql`<` : sql`>`} (${last.value}, ${last.uid})`
}

export async function countAcceptances(reader: Reader, groups: readonly string[]): Promise<number> {
  return countRows(reader, sql`FROM terms_acceptances t WHERE t.group_uid IN (${list(groups)})`)
}

/** IDs of the documents that were accepted for at least one of the groups. */
export async function acceptedDocuments(reader: Reader, groups: readonly string[]): Promise<Set<string>> {
  const rows = await reader.all<{ docId: string }>(sql`
    SELECT t.doc_id AS "docId" FROM terms_acceptances t WHERE t.group_uid IN (${list(groups)})`)
  return new Set(rows.map(({ docId }) => docId))
}

/** Inserts an acceptance. Returns false if the document was already accepted for this group. The earlier acceptance is kept. */
export async function insertAcceptance(tx: Tx, acceptance: Omit<TermsAcceptance, 'uid'>): Promise<boolean> {
  const { orgUid, docId, acceptedBy, createTime } = acceptance
  const inserted = await tx.run(sql`
    INSERT INTO terms_acceptances (group_uid, doc_id, accepted_by, create_time)
    VALUES (${orgUid}, ${docId}, ${acceptedBy}, ${createTime})
        ON CONFLICT (group_uid, doc_id) DO NOTHING`)
  return inserted > 0
}

export async function deleteAcceptances(tx: Tx, group: string): Promise<void> {
  await tx.run(sql`DELETE FROM terms_acceptances WHERE group_uid = ${group}`)
}
