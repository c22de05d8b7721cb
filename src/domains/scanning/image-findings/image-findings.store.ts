import { allOf } from '#db/bulk.ts'
import { list, type Reader, type Sql, sql } from '#db/sql.ts'
import type { NamedRecord } from '../records/records.model.ts'
import { type NamedRow, namedColumns, toNamed } from '../records/records.store.ts'
import {
  createParts,
  type FindingRow,
  findingColumns,
  type PairRow,
  type SuppressedRow,
  suppressedColumns,
  toSuppressed,
} from './finding-parts.store.ts'
import type { Known } from './image-findings.model.ts'

export { pastTexts } from './finding-parts.store.ts'

/**
 * Present and former findings of a list from shared data sources and from some organizations' advisories, in a stable order. If
 * there are more than `most`, open findings have precedence, then the newest ones.
 */
export async function findKnown(
  reader: Reader,
  listNo: number,
  organizations: readonly string[],
  most: number,
): Promise<Known[]> {
  const first = sql`CASE WHEN f.gone_time = '' THEN 0 ELSE 1 END, f.id DESC`
  return selectKnown(reader, listNo, organizations, { most, when: sql`1 = 1`, first })
}

/**
 * Open findings of a list. If there are more than `most`, findings with the highest severity have precedence, then the newest
 * ones.
 */
export async function findKnownNow(
  reader: Reader,
  listNo: number,
  organizations: readonly string[],
  most: number,
): Promise<Known[]> {
  const first = sql`CASE f.severity WHEN 4 THEN 0 WHEN 3 THEN 1 WHEN 2 THEN 2 WHEN 1 THEN 3 WHEN 0 THEN 4 ELSE 5 END, f.id DESC`
  return selectKnown(reader, listNo, organizations, { most, when: sql`f.gone_time = ''`, first })
}

async function selectKnown(
  reader: Reader,
  listNo: number,
  organizations: readonly string[],
  { most, when, first }: { most: number; when: Sql; first: Sql },
): Promise<Known[]> {
  const rows = await reader.all<FindingRow & PairRow>(sql`
    SELECT ${findingColumns}, l.locations, l.owner_id AS "ownerNo"
      FROM list_components l
      JOIN findings f ON f.component_id = l.component_id
     WHERE l.list_id = ${listNo} AND f.place IN (${list(['', ...organizations])}) AND ${when}
     ORDER BY ${first} LIMIT ${most}`)
  const parts = createParts(reader)
  await parts.need(rows)
  const known = rows.map((row) => parts.knownOf(row, row))
  known.sort((one, other) => one.findingNo - other.findingNo)
  if (known.every(({ ownerNo }) => ownerNo === 0)) return known
  const suppressed = Map.groupBy(await suppressedIn(reader, listNo, most), ({ findingNo }) => findingNo)
  return known.map((one) => ({ ...one, suppressed: suppressed.get(one.findingNo) ?? [] }))
}

/**
 * First time at which a vulnerability was found in a package. A rewritten record has the same ID, so its earlier findings are
 * included.
 */
export type FirstFinding = { componentNo: number; recordId: string; foundTime: string }

/** All present and former findings in some packages. */
export async function firstFindingsIn(
  reader: Reader,
  components: readonly number[],
  organizations: readonly string[],
): Promise<FirstFinding[]> {
  const found = (some: readonly number[]) => sql`
    SELECT f.component_id AS "componentNo", r.record_id AS "recordId", f.found_time AS "foundTime"
      FROM findings f
      JOIN affected_packages a ON a.id = f.affected_id
      JOIN vulnerability_records r ON r.id = a.record_no
     WHERE f.component_id IN (${list(some)}) AND f.place IN (${list(['', ...organizations])})`
  return allOf(reader, [...new Set(components)], found)
}

/** Suppressions of the findings in a list, with their time ranges. */
async function suppressedIn(reader: Reader, listNo: number, most: number) {
  const rows = await reader.all<SuppressedRow>(sql`
    SELECT ${suppressedColumns}
      FROM list_components l
      JOIN findings f ON f.component_id = l.component_id
      JOIN suppressions s ON s.finding_id = f.id AND s.owner_id = l.owner_id
      JOIN components c ON c.id = s.owner_id
     WHERE l.list_id = ${listNo} AND l.owner_id <> 0 ORDER BY s.id LIMIT ${most}`)
  return rows.map(toSuppressed)
}

/** Some current records with a name. Records of the source `own` are included only if they are about one of the scopes. */
export async function recordsNamed(
  reader: Reader,
  name: string,
  { own, organizations, most }: { own: string; organizations: readonly string[]; most: number },
): Promise<NamedRecord[]> {
  const rows = await reader.all<NamedRow>(sql`
    SELECT ${namedColumns}
      FROM vulnerability_record_names n
      JOIN vulnerability_records r ON r.id = n.record_no
      JOIN vulnerability_sources s ON s.id = r.source_id
     WHERE n.name = ${name}
       AND (s.name <> ${own} OR EXISTS (SELECT 1 FROM affected_packages a
                                          WHERE a.record_no = r.id AND a.place IN (${list(['', ...organizations])})))
     LIMIT ${most}`)
  return rows.map(toNamed)
}
