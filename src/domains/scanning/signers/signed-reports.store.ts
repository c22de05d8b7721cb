import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import type { Step } from '#lib/lists/paging.ts'
import { rootOf } from '#lib/uid.ts'
import type { UncheckedReport } from '../scan-reports/scan-reports.model.ts'

/** Some documents in a scope that can have signatures, after the document `after`, in order. */
export async function signedBelow(reader: Reader, scope: string, { after, most }: Step): Promise<number[]> {
  const rows = await reader.all<{ id: number }>(sql`
    SELECT s.id FROM scan_reports s JOIN repos r ON r.id = s.repo_id
     WHERE s.organization = ${rootOf(scope)} AND s.signatures <> 0 AND s.id > ${after} AND s.state IN (2, 4)
       AND EXISTS (SELECT 1 FROM scan_report_texts x WHERE x.report_id = s.id AND x.statements <> '')
       AND (r.uid = ${scope} OR (r.uid > ${scope} AND r.uid < ${`${scope}0`})) ORDER BY s.id LIMIT ${most}`)
  return rows.map(({ id }) => id)
}

/** Queues some documents for verification. */
export async function checkSigned(tx: Tx, ids: readonly number[], now: string): Promise<void> {
  if (ids.length === 0) return
  await tx.run(sql`
    UPDATE scan_reports SET check_time = ${now}, attempts = 0
     WHERE id IN (${list(ids)}) AND state IN (2, 4) AND check_time = ''`)
}

/**
 * The first document of the next organization after `after` that has documents to verify. The document's due time can be in the
 * future.
 */
export async function nextUnchecked(reader: Reader, after: string): Promise<UncheckedReport | undefined> {
  return reader.get<UncheckedReport>(sql`
    SELECT s.id, s.repo_id AS repo, r.uid AS "repoUid", s.organization, s.digest, s.raw_digest AS "rawDigest",
           s.create_time AS "createTime", s.attempts, s.check_time AS "dueTime"
      FROM scan_reports s JOIN repos r ON r.id = s.repo_id
     WHERE s.check_time <> '' AND s.organization > ${after} ORDER BY s.organization, s.check_time, s.id LIMIT 1`)
}

/** Stores the trusted signers of a document. If its number of signatures was unknown, stores that number too. */
export async function noteChecked(tx: Tx, id: number, signers: readonly string[], signatures: number): Promise<void> {
  await tx.run(sql`
    UPDATE scan_reports SET check_time = '', attempts = 0, signers = ${JSON.stringify(signers)},
           signatures = CASE WHEN signatures < 0 THEN CAST(${signatures} AS INTEGER) ELSE signatures END
     WHERE id = ${id}`)
}

/** Postpones a failed verification. If `dueTime` is empty, the document is not verified again. */
export async function postponeCheck(tx: Tx, id: number, attempts: number, dueTime: string): Promise<void> {
  await tx.run(sql`
    UPDATE scan_reports SET check_time = ${dueTime}, attempts = ${attempts} WHERE id = ${id} AND check_time <> ''`)
}
