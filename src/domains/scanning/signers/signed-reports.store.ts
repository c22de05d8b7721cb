import { type Reader, sql, type Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import type { UncheckedReport } from '../outside/scan-reports.model.ts'

/** Has some of the signed documents below a place looked at, behind one of them; answers with the last, if there are more. */
export async function checkSignedBelow(
  tx: Tx,
  place: string,
  { after, most, now }: { after: number; most: number; now: string },
): Promise<number | undefined> {
  const rows = await tx.all<{ id: number }>(sql`
    SELECT s.id FROM scan_reports s JOIN repos r ON r.id = s.repo_id
     WHERE s.organization = ${rootOf(place)} AND s.signatures <> 0 AND s.id > ${after} AND s.state IN (2, 4)
       AND EXISTS (SELECT 1 FROM scan_report_texts x WHERE x.report_id = s.id AND x.statements <> '')
       AND (r.uid = ${place} OR (r.uid > ${place} AND r.uid < ${`${place}0`})) ORDER BY s.id LIMIT ${most}`)
  const last = rows.at(-1)
  if (!last) return undefined
  await tx.run(sql`
    UPDATE scan_reports SET check_time = ${now}
     WHERE organization = ${rootOf(place)} AND signatures <> 0 AND id > ${after} AND id <= ${last.id}
       AND state IN (2, 4) AND check_time = ''
       AND EXISTS (SELECT 1 FROM scan_report_texts x WHERE x.report_id = scan_reports.id AND x.statements <> '')
       AND repo_id IN (SELECT id FROM repos WHERE uid = ${place} OR (uid > ${place} AND uid < ${`${place}0`}))`)
  return rows.length < most ? undefined : Number(last.id)
}

/** Of the next organisation behind `after` that has any to look at, the one that is due first, be it now or later. */
export async function nextUnchecked(reader: Reader, after: string): Promise<UncheckedReport | undefined> {
  const row = await reader.get<UncheckedReport>(sql`
    SELECT s.id, s.repo_id AS repo, r.uid AS "repoUid", s.organization, s.digest, s.raw_digest AS "rawDigest",
           s.check_time AS "dueTime"
      FROM scan_reports s JOIN repos r ON r.id = s.repo_id
     WHERE s.check_time <> '' AND s.organization > ${after} ORDER BY s.organization, s.check_time, s.id LIMIT 1`)
  return row && { ...row, id: Number(row.id), repo: Number(row.repo) }
}

/** Who of those that are trusted has signed it; how many signatures it has, where that was not known. */
export async function noteChecked(tx: Tx, id: number, signers: readonly string[], signatures: number): Promise<void> {
  await tx.run(sql`
    UPDATE scan_reports SET check_time = '', signers = ${JSON.stringify(signers)},
           signatures = CASE WHEN signatures < 0 THEN CAST(${signatures} AS INTEGER) ELSE signatures END
     WHERE id = ${id}`)
}

/** Without having looked. */
export async function postponeCheck(tx: Tx, id: number, dueTime: string): Promise<void> {
  await tx.run(sql`UPDATE scan_reports SET check_time = ${dueTime} WHERE id = ${id} AND check_time <> ''`)
}
