import { allOf, insertsOf } from '#db/bulk.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import type { Step } from '#lib/lists/paging.ts'
import type { MatchedComponent } from '../lists/lists.model.ts'
import { matchedColumns, toMatched } from '../lists/lists.store.ts'
import { type AffectedState, affectedStates, type RecordSeverity } from '../records/records.model.ts'
import { type AffectedRow, bytesOfFinding, type NewFinding, type OpenFinding } from './findings.model.ts'

type MatchedRow = Parameters<typeof toMatched>[0]

/** Components after `after` and up to `upTo`, in order. The component or its source package has the given name. */
export async function componentsNamed(
  reader: Reader,
  name: string,
  { after, upTo, most }: { after: number; upTo: number; most: number },
): Promise<MatchedComponent[]> {
  const rows = await reader.all<MatchedRow>(sql`
    SELECT ${matchedColumns} FROM components c
     WHERE c.id IN (
       SELECT * FROM (SELECT n.id FROM components n WHERE n.name = ${name} AND n.id > ${after} AND n.id <= ${upTo}
                       ORDER BY n.id LIMIT ${most}) AS matches
        UNION
       SELECT * FROM (SELECT o.id FROM components o
                       WHERE o.origin = ${name} AND o.origin <> o.name AND o.id > ${after} AND o.id <= ${upTo}
                       ORDER BY o.id LIMIT ${most}) AS matches)
     ORDER BY c.id LIMIT ${most}`)
  return rows.map(toMatched)
}

/** All components after `after`, in order. */
export async function componentsAfter(reader: Reader, after: number, most: number): Promise<MatchedComponent[]> {
  const rows = await reader.all<MatchedRow>(sql`
    SELECT ${matchedColumns} FROM components c WHERE c.id > ${after} ORDER BY c.id LIMIT ${most}`)
  return rows.map(toMatched)
}

type Row = Omit<AffectedRow, 'ranges' | 'versions' | 'qualifiers' | 'state'> & {
  ranges: string
  versions: string
  qualifiers: string
  state: number
}

export const affectedColumns = sql`
  a.id AS "affectedNo", a.record_no AS "recordNo", a.place AS organization, a.ecosystem, a.name, a.ranges, a.versions, a.state,
  a.severity, a.qualifiers`

const stateNames = new Map(Object.entries(affectedStates).map(([name, number]) => [number, name as AffectedState]))

export function toAffected<T extends Row>(row: T): Omit<T, keyof Row> & AffectedRow {
  return {
    ...row,
    state: stateNames.get(row.state as 1)!,
    ranges: JSON.parse(row.ranges) as AffectedRow['ranges'],
    versions: JSON.parse(row.versions) as string[],
    qualifiers: JSON.parse(row.qualifiers) as AffectedRow['qualifiers'],
  }
}

/** Current advisory entries on packages with these names in these ecosystems, after `after`, in order. */
export async function affectedNow(
  reader: Reader,
  { names, ecosystems }: { names: readonly string[]; ecosystems: readonly string[] },
  { after, most }: Step,
): Promise<AffectedRow[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${affectedColumns} FROM affected_packages a
     WHERE a.name IN (${list(names)}) AND a.ecosystem IN (${list(ecosystems)}) AND a.until_time = '' AND a.id > ${after}
     ORDER BY a.id LIMIT ${most}`)
  return rows.map(toAffected)
}

/** Open findings of some components from advisory entries after `after` and up to `upTo`. */
export async function openFindings(
  reader: Reader,
  components: readonly number[],
  { after, upTo }: { after: number; upTo: number },
): Promise<OpenFinding[]> {
  return reader.all<OpenFinding>(sql`
    SELECT f.id AS "findingNo", f.component_id AS "componentNo", f.affected_id AS "affectedNo", f.place AS organization, f.state, f.severity
      FROM findings f
     WHERE f.component_id IN (${list(components)}) AND f.gone_time = ''
       AND f.affected_id > ${after} AND f.affected_id <= ${upTo}`)
}

/** Inserts findings. If a package was never compared before, marks its findings as reported, because they are not new. */
export async function insertFindings(tx: Tx, found: readonly NewFinding[], now: string): Promise<void> {
  const rows = found.map(
    (one) => sql`(${one.componentNo}, ${one.affectedNo}, ${one.organization}, ${one.state}, ${one.severity}, ${now},
      (SELECT CASE WHEN c.match_time = '' THEN 1 ELSE 0 END FROM components c WHERE c.id = ${one.componentNo}),
      ${one.organization === '' ? 0 : bytesOfFinding})`,
  )
  const into = sql`INSERT INTO findings (component_id, affected_id, place, state, severity, found_time, told, charged)`
  for (const insert of insertsOf(into, rows, sql`ON CONFLICT DO NOTHING`)) await tx.run(insert)
}

/**
 * Closes findings. If a package was never compared completely, marks its findings as not reported. Exception: findings in
 * packages that are compared again because a list was over its limit. Events report these findings as resolved.
 */
export async function closeFindings(tx: Tx, findings: readonly number[], now: string): Promise<void> {
  for (const some of chunks(findings, 400)) {
    await tx.run(sql`
      UPDATE findings SET gone_time = ${now}, told = CASE
               WHEN EXISTS (SELECT 1 FROM components c WHERE c.id = findings.component_id AND c.match_time = '')
                AND NOT EXISTS (SELECT 1 FROM list_components l JOIN list_limits m ON m.list_id = l.list_id
                                 WHERE l.component_id = findings.component_id AND m.until_time >= findings.found_time)
               THEN 0 ELSE told END
       WHERE id IN (${list(some)})`)
  }
}

/** Number of open findings of some organizations in each component. Counts only findings from advisory entries up to `upTo`. */
export async function countOwn(
  reader: Reader,
  { components, organizations }: { components: readonly number[]; organizations: readonly string[] },
  upTo: number,
): Promise<{ componentNo: number; organization: string; total: number }[]> {
  return reader.all<{ componentNo: number; organization: string; total: number }>(sql`
    SELECT f.component_id AS "componentNo", f.place AS organization, count(*) AS total FROM findings f
     WHERE f.component_id IN (${list(components)}) AND f.place IN (${list(organizations)}) AND f.gone_time = ''
       AND f.affected_id <= ${upTo}
     GROUP BY f.component_id, f.place`)
}

/** Marks components as compared. The time of the first comparison does not change. */
export async function noteMatched(tx: Tx, components: readonly number[], now: string): Promise<void> {
  // The first findings in a package are marked as reported, because they are not new.
  await tx.run(sql`
    UPDATE findings SET told = 1
     WHERE told = 0 AND gone_time = ''
       AND component_id IN (SELECT c.id FROM components c WHERE c.id IN (${list(components)}) AND c.match_time = '')`)
  await tx.run(sql`UPDATE components SET match_time = ${now} WHERE id IN (${list(components)}) AND match_time = ''`)
}

export type RecordNames = { recordNo: number; names: string[]; severities: RecordSeverity[] }

/** Names and severities of these records. */
export async function recordsOf(reader: Reader, records: readonly number[]): Promise<RecordNames[]> {
  type Stored = { recordNo: number; id: string; aliases: string; upstream: string; severities: string }
  const rows = await reader.all<Stored>(sql`
    SELECT r.id AS "recordNo", r.record_id AS id, r.aliases, r.upstream, r.severities
      FROM vulnerability_records r WHERE r.id IN (${list(records)})`)
  return rows.map(({ recordNo, id, aliases, upstream, severities }) => ({
    recordNo,
    names: [...new Set([id, ...(JSON.parse(aliases) as string[]), ...(JSON.parse(upstream) as string[])])],
    severities: JSON.parse(severities) as RecordSeverity[],
  }))
}

/** Severities in the current records that have one of these vulnerability IDs. */
export async function severitiesNamed(
  reader: Reader,
  names: readonly string[],
): Promise<{ name: string; severities: RecordSeverity[] }[]> {
  const selectSeverities = (some: readonly string[]) => sql`
    SELECT n.name, r.severities
      FROM vulnerability_record_names n JOIN vulnerability_records r ON r.id = n.record_no
     WHERE n.name IN (${list(some)}) AND r.severities <> '[]' AND r.withdraw_time = ''`
  const rows = await allOf<{ name: string; severities: string }, string>(reader, names, selectSeverities)
  return rows.map(({ name, severities }) => ({ name, severities: JSON.parse(severities) as RecordSeverity[] }))
}
