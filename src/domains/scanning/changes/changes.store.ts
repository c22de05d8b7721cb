// Findings that no event has reported yet, and recorded changes that wait for their events.

import { allOf, exists } from '#db/bulk.ts'
import { join, list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import type { Step } from '#lib/lists/paging.ts'
import type { StoredComponent } from '../lists/lists.model.ts'
import { componentColumns } from '../lists/lists.store.ts'
import { matchKinds } from '../queue/queue.model.ts'
import type { NamedRecord } from '../records/records.model.ts'
import { type NamedRow, namedColumns, toNamed } from '../records/records.store.ts'
import { type Change, changeKinds } from './changes.model.ts'

/** `came`: the finding is open and was not reported yet. `went`: the finding was reported and is closed now. */
export type Transition = 'came' | 'went'

/**
 * A package, and the organization whose own advisories its findings come from. The organization is empty for findings from shared
 * data sources.
 */
export type FindingComponent = StoredComponent & { organization: string }

/** Compared packages with a finding to report, in the order of the finding numbers, after the finding `after`. */
export async function listUnannounced(
  reader: Reader,
  turned: Transition,
  after: number,
  most: number,
): Promise<(FindingComponent & { findingNo: number })[]> {
  const toTell = turned === 'came' ? sql`x.told = 0 AND x.gone_time = ''` : sql`x.told = 1 AND x.gone_time <> ''`
  return reader.all<FindingComponent & { findingNo: number }>(sql`
    SELECT f.id AS "findingNo", f.place AS organization, ${componentColumns}
      FROM (SELECT x.id, x.component_id, x.place FROM findings x
             WHERE ${toTell} AND x.id > ${after}
               AND EXISTS (SELECT 1 FROM components m WHERE m.id = x.component_id AND m.match_time <> '')
             ORDER BY x.id LIMIT ${most}) AS f
      JOIN components c ON c.id = f.component_id ORDER BY f.id`)
}

/** Open findings in some packages, and closed findings that were reported. `UNION ALL` lets each half use a separate index. */
const findingsIn = (organization: string, components: readonly number[], columns: Sql, grouped = sql``): Sql => sql`
  SELECT ${columns} FROM findings
   WHERE component_id IN (${list(components)}) AND place = ${organization} AND gone_time = '' ${grouped}
   UNION ALL
  SELECT ${columns} FROM findings
   WHERE component_id IN (${list(components)}) AND place = ${organization} AND told = 1 AND gone_time <> '' ${grouped}`

/** Numbers of the packages by organization. */
function byOrganization(packages: readonly FindingComponent[]): [organization: string, components: number[]][] {
  const all = Map.groupBy(packages, ({ organization }) => organization)
  return [...all].map(([organization, those]) => [
    organization,
    [...new Set(those.map(({ componentNo }) => componentNo))],
  ])
}

const componentsAtOnce = 50

export const findingComponentKey = ({
  componentNo,
  organization,
}: Pick<FindingComponent, 'componentNo' | 'organization'>): string => `${componentNo} ${organization}`

/** Number of findings that `reportableFindings` reads for each package. The keys are from `findingComponentKey`. */
export async function countReportable(
  reader: Reader,
  packages: readonly FindingComponent[],
): Promise<Map<string, number>> {
  const totals = new Map<string, number>()
  const counted = sql`component_id AS "componentNo", place AS organization, count(*) AS total`
  for (const some of chunks(byOrganization(packages), componentsAtOnce)) {
    const all = some.map(([organization, numbers]) =>
      findingsIn(organization, numbers, counted, sql`GROUP BY component_id, place`),
    )
    const rows = await reader.all<Pick<FindingComponent, 'componentNo' | 'organization'> & { total: number }>(
      join(all, ' UNION ALL '),
    )
    for (const { total, ...of } of rows) {
      const key = findingComponentKey(of)
      totals.set(key, (totals.get(key) ?? 0) + total)
    }
  }
  return totals
}

/** Items among the given ones that are queued for comparison. */
export async function waitingItems(reader: Reader, kind: number, items: readonly string[]): Promise<Set<string>> {
  const waiting = (some: readonly string[]) => sql`
    SELECT item FROM match_queue WHERE kind = ${kind} AND item IN (${list(some)})`
  const rows = await allOf<{ item: string }, string>(reader, items, waiting)
  return new Set(rows.map(({ item }) => item))
}

export type ReportableFinding = {
  findingNo: number
  componentNo: number
  organization: string
  state: number
  foundTime: string
  goneTime: string
  isPublishedEvent: boolean
  /**
   * True if the first read of the data source contained the record. Events do not report such a finding, because it is not new.
   */
  isFirst: boolean
  record: NamedRecord
}

/**
 * Open findings of some packages, and closed findings that were reported, for at most twenty organizations. `isFirst` is always
 * false for findings from the source `own` or from a source without ecosystems.
 */
export async function reportableFindings(
  reader: Reader,
  packages: readonly FindingComponent[],
  own: string,
): Promise<ReportableFinding[]> {
  type Row = Omit<ReportableFinding, 'isTold' | 'isFirst' | 'record'> & NamedRow & { told: number; first: number }
  const columns = sql`id, component_id, affected_id, place, state, found_time, gone_time, told`
  const all = byOrganization(packages).map(([organization, components]) =>
    findingsIn(organization, components, columns),
  )
  const rows = await reader.all<Row>(sql`
    SELECT f.id AS "findingNo", f.component_id AS "componentNo", f.place AS organization, f.state, f.found_time AS "foundTime",
           f.gone_time AS "goneTime", f.told, ${namedColumns},
           CASE WHEN s.ecosystems <> '[]' AND s.name <> ${own} AND r.from_time <= coalesce(
                       (SELECT min(x.fetch_time) FROM vulnerability_source_reads x
                         WHERE x.source_id = s.id AND x.ecosystems <> ''), '9')
                THEN 1 ELSE 0 END AS first
      FROM (${join(all, ' UNION ALL ')}) AS f
      JOIN affected_packages a ON a.id = f.affected_id
      JOIN vulnerability_records r ON r.id = a.record_no
      JOIN vulnerability_sources s ON s.id = r.source_id`)
  return rows.map(({ told, first, recordId, aliases, upstream, ...row }) => ({
    ...{ ...row, isPublishedEvent: told === 1, isFirst: first === 1 },
    record: toNamed({ recordId, aliases, upstream }),
  }))
}

export async function markAnnounced(tx: Tx, findings: readonly number[], told: 0 | 1): Promise<void> {
  for (const some of chunks(findings, 400)) {
    await tx.run(sql`UPDATE findings SET told = ${told} WHERE id IN (${list(some)})`)
  }
}

export type NewChange = Pick<Change, 'vulnerability' | 'organization' | 'kind' | 'changeTime'> & { componentNo: number }

/** Records a change of a package for an event. If the opposite change is still recorded, deletes that one instead. */
export async function addChange(tx: Tx, { vulnerability, organization, kind, changeTime, componentNo }: NewChange) {
  const opposite = changeKinds[kind === 'found' ? 'resolved' : 'found']
  const undone = await tx.run(sql`
    DELETE FROM vulnerability_change_components
     WHERE component_id = ${componentNo} AND change_id IN (
             SELECT v.id FROM vulnerability_changes v
              WHERE v.vulnerability = ${vulnerability} AND v.place = ${organization} AND v.kind = ${opposite} AND v.begun = 0)`)
  if (undone > 0) return
  const row = await tx.get<{ changeNo: number }>(sql`
    INSERT INTO vulnerability_changes (vulnerability, place, kind, change_time)
    VALUES (${vulnerability}, ${organization}, ${changeKinds[kind]}, ${changeTime})
        ON CONFLICT (vulnerability, place, kind) WHERE begun = 0 DO UPDATE
           SET change_time = CASE WHEN excluded.change_time < vulnerability_changes.change_time
                                  THEN excluded.change_time ELSE vulnerability_changes.change_time END
    RETURNING id AS "changeNo"`)
  await tx.run(sql`
    INSERT INTO vulnerability_change_components (change_id, component_id, change_time)
    VALUES (${row!.changeNo}, ${componentNo}, ${changeTime}) ON CONFLICT DO NOTHING`)
}

type ChangeRow = Omit<Change, 'kind'> & { kind: number }

/** The oldest recorded change. */
export async function nextChange(reader: Reader): Promise<Change | undefined> {
  const row = await reader.get<ChangeRow>(sql`
    SELECT id AS "changeNo", vulnerability, place AS organization, kind, last_repo AS "lastRepo", change_time AS "changeTime"
      FROM vulnerability_changes WHERE id > 0 ORDER BY id LIMIT 1`)
  return row && { ...row, kind: row.kind === changeKinds.found ? 'found' : 'resolved' }
}

export async function beginChange(tx: Tx, changeNo: number): Promise<void> {
  await tx.run(sql`UPDATE vulnerability_changes SET begun = 1 WHERE id = ${changeNo}`)
}

/** Stores the number of the last repository that was processed for the change. */
export async function noteRepo(tx: Tx, changeNo: number, repo: number): Promise<void> {
  await tx.run(sql`UPDATE vulnerability_changes SET last_repo = ${repo} WHERE id = ${changeNo}`)
}

export async function endChange(tx: Tx, changeNo: number): Promise<void> {
  await tx.run(sql`DELETE FROM vulnerability_changes WHERE id = ${changeNo}`)
}

/** Packages of a recorded change after the package `after`, in order. */
export async function changedComponents(reader: Reader, changeNo: number, { after, most }: Step): Promise<number[]> {
  const rows = await reader.all<{ componentNo: number }>(sql`
    SELECT component_id AS "componentNo" FROM vulnerability_change_components
     WHERE change_id = ${changeNo} AND component_id > ${after} ORDER BY component_id LIMIT ${most}`)
  return rows.map(({ componentNo }) => componentNo)
}

/** Package lists among the given ones that contain a package of the change and were compared before the change. */
export async function listsOfChange(reader: Reader, changeNo: number, lists: readonly number[]): Promise<Set<number>> {
  const touched = (some: readonly number[]) => sql`
    SELECT DISTINCT l.list_id AS "listNo"
      FROM list_components l
      JOIN component_lists x ON x.id = l.list_id
      JOIN vulnerability_change_components v ON v.component_id = l.component_id AND v.change_id = ${changeNo}
     WHERE l.list_id IN (${list(some)}) AND x.match_time <> '' AND x.match_time < v.change_time`
  const rows = await allOf<{ listNo: number }, number>(reader, lists, touched, 100)
  return new Set(rows.map(({ listNo }) => listNo))
}

type About = Pick<Change, 'vulnerability' | 'organization'>

/** True if a package list is queued for comparison, so that some of its findings may be missing. */
export async function waitsForMatch(reader: Reader, listNo: number): Promise<boolean> {
  return exists(reader, sql`FROM match_queue WHERE kind = ${matchKinds.list} AND item = ${String(listNo)}`)
}

export async function noteLater(
  tx: Tx,
  { vulnerability, organization }: About,
  lists: Iterable<number>,
): Promise<void> {
  for (const listNo of lists) {
    await tx.run(sql`
      INSERT INTO resolved_later (list_id, vulnerability, place) VALUES (${listNo}, ${vulnerability}, ${organization})
          ON CONFLICT DO NOTHING`)
  }
}

/** Deletes resolved vulnerabilities that were reported in the meantime, or that were found again. */
export async function forgetLater(
  tx: Tx,
  { vulnerability, organization }: About,
  lists: Iterable<number>,
): Promise<void> {
  const numbers = [...lists]
  if (numbers.length === 0) return
  await tx.run(sql`
    DELETE FROM resolved_later
     WHERE list_id IN (${list(numbers)}) AND vulnerability = ${vulnerability} AND place = ${organization}`)
}

/** The next package list after `after` with resolved vulnerabilities to report. */
export async function nextLater(reader: Reader, after: number): Promise<number | undefined> {
  const row = await reader.get<{ listNo: number }>(sql`
    SELECT list_id AS "listNo" FROM resolved_later WHERE list_id > ${after} ORDER BY list_id LIMIT 1`)
  return row?.listNo
}

/** Some resolved vulnerabilities of a package list to report, in order. */
export async function laterOf(
  reader: Reader,
  listNo: number,
  most: number,
): Promise<(About & Pick<Change, 'lastRepo'>)[]> {
  return reader.all<About & { lastRepo: number }>(sql`
    SELECT vulnerability, place AS organization, last_repo AS "lastRepo" FROM resolved_later
     WHERE list_id = ${listNo} ORDER BY list_id, vulnerability, place LIMIT ${most}`)
}

/** Stores the number of the last repository that was processed for the package list. */
export async function noteLaterRepo(tx: Tx, listNo: number, one: About, repo: number): Promise<void> {
  await tx.run(sql`
    UPDATE resolved_later SET last_repo = ${repo}
     WHERE list_id = ${listNo} AND vulnerability = ${one.vulnerability} AND place = ${one.organization}`)
}
