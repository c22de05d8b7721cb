import { allOf, insertsOf } from '#db/bulk.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import type { Step } from '#lib/lists/paging.ts'
import type { StoredComponent } from '../lists/lists.model.ts'
import { componentColumns } from '../lists/lists.store.ts'
import type { NamedRecord } from '../records/records.model.ts'
import { type NamedRow, namedColumns, toNamed } from '../records/records.store.ts'
import type { AffectedRow } from './findings.model.ts'
import { affectedColumns, toAffected } from './findings.store.ts'

/** A language package, and the distribution package that installed the language package. */
export type OwnedPair = { componentNo: number; ownerNo: number }

/** Last pair of a page. Pairs with the components as language packages come first, then pairs with the components as owners. */
export type PairCursor = { asOwner: boolean; one: number; other: number }

/** Some of the pairs that contain one of the components. `next` is undefined if there are no more pairs. */
export async function pairsTouching(
  reader: Reader,
  components: readonly number[],
  { after, most }: { after: PairCursor | undefined; most: number },
): Promise<{ pairs: OwnedPair[]; next: PairCursor | undefined }> {
  const { asOwner, one, other } = after ?? { asOwner: false, one: 0, other: 0 }
  const [first, second] = asOwner ? [sql`p.owner_id`, sql`p.component_id`] : [sql`p.component_id`, sql`p.owner_id`]
  const pairs = await reader.all<OwnedPair>(sql`
    SELECT p.component_id AS "componentNo", p.owner_id AS "ownerNo" FROM owned_components p
     WHERE ${first} IN (${list(components)}) AND ${first} >= ${one} AND (${first} > ${one} OR ${second} > ${other})
     ORDER BY ${first}, ${second} LIMIT ${most}`)
  const last = pairs.at(-1)
  if (last && pairs.length === most) {
    const [a, b] = asOwner ? [last.ownerNo, last.componentNo] : [last.componentNo, last.ownerNo]
    return { pairs, next: { asOwner, one: a, other: b } }
  }
  return { pairs, next: asOwner ? undefined : { asOwner: true, one: 0, other: 0 } }
}

/** Some of the distribution packages that own a component, in order. */
export async function pairsOfComponent(
  reader: Reader,
  componentNo: number,
  { after, most }: Step,
): Promise<OwnedPair[]> {
  return reader.all<OwnedPair>(sql`
    SELECT p.component_id AS "componentNo", p.owner_id AS "ownerNo" FROM owned_components p
     WHERE p.component_id = ${componentNo} AND p.owner_id > ${after} ORDER BY p.owner_id LIMIT ${most}`)
}

/** Some of the pairs of a list after a component, in order. */
export async function pairsOfList(reader: Reader, listNo: number, { after, most }: Step): Promise<OwnedPair[]> {
  return reader.all<OwnedPair>(sql`
    SELECT component_id AS "componentNo", owner_id AS "ownerNo" FROM list_components
     WHERE list_id = ${listNo} AND component_id > ${after} AND owner_id <> 0 ORDER BY component_id LIMIT ${most}`)
}

export type FoundIn = { findingNo: number; componentNo: number; affectedNo: number; record: NamedRecord }
/** The last finding of a page. */
export type FoundCursor = Pick<FoundIn, 'componentNo' | 'affectedNo'>

/** Some of the open findings in some components with the names of their records, in order. */
export async function foundIn(
  reader: Reader,
  components: readonly number[],
  { after, most }: { after: FoundCursor | undefined; most: number },
): Promise<FoundIn[]> {
  const { componentNo, affectedNo } = after ?? { componentNo: 0, affectedNo: 0 }
  const rows = await reader.all<NamedRow & Omit<FoundIn, 'record'>>(sql`
    SELECT f.id AS "findingNo", f.component_id AS "componentNo", f.affected_id AS "affectedNo", ${namedColumns}
      FROM findings f
      JOIN affected_packages a ON a.id = f.affected_id
      JOIN vulnerability_records r ON r.id = a.record_no
     WHERE f.component_id IN (${list(components)}) AND f.gone_time = '' AND f.component_id >= ${componentNo}
       AND (f.component_id > ${componentNo} OR f.affected_id > ${affectedNo})
     ORDER BY f.component_id, f.affected_id LIMIT ${most}`)
  return rows.map((row) => ({
    ...{ findingNo: row.findingNo, componentNo: row.componentNo, affectedNo: row.affectedNo },
    record: toNamed(row),
  }))
}

export async function componentsOf(reader: Reader, numbers: readonly number[]): Promise<StoredComponent[]> {
  return reader.all<StoredComponent>(sql`
    SELECT ${componentColumns} FROM components c WHERE c.id IN (${list(numbers)})`)
}

export type AdvisoryEntry = AffectedRow & { record: NamedRecord; source: string }

/** Current advisory entries of shared data sources on these packages and vulnerabilities. */
export async function advisoryEntriesAbout(
  reader: Reader,
  { names, ecosystems }: { names: readonly string[]; ecosystems: readonly string[] },
  vulnerabilities: readonly string[],
): Promise<AdvisoryEntry[]> {
  const found = new Map<number, AdvisoryEntry>()
  for (const some of chunks(vulnerabilities, 400)) {
    const rows = await reader.all<NamedRow & { source: string } & Parameters<typeof toAffected>[0]>(sql`
      SELECT DISTINCT ${affectedColumns}, ${namedColumns}, s.name AS source
        FROM vulnerability_record_names n
        JOIN affected_packages a ON a.record_no = n.record_no
        JOIN vulnerability_records r ON r.id = a.record_no
        JOIN vulnerability_sources s ON s.id = r.source_id
       WHERE n.name IN (${list(some)}) AND a.name IN (${list(names)}) AND a.ecosystem IN (${list(ecosystems)})
         AND a.until_time = '' AND a.place = ''`)
    for (const row of rows) {
      const entry = { ...toAffected(row), record: toNamed(row), source: row.source }
      found.set(entry.affectedNo, entry)
    }
  }
  return [...found.values()]
}

export type Suppression = { findingNo: number; ownerNo: number; source: string; record: string }

/** Current suppressions of some findings. */
export async function suppressedNow(
  reader: Reader,
  findings: readonly number[],
): Promise<(Suppression & { id: number })[]> {
  const now = (some: readonly number[]) => sql`
    SELECT id, finding_id AS "findingNo", owner_id AS "ownerNo", source, record FROM suppressions
     WHERE finding_id IN (${list(some)}) AND until_time = ''`
  return allOf<Suppression & { id: number }, number>(reader, findings, now)
}

export async function endSuppressions(tx: Tx, ids: readonly number[], now: string): Promise<void> {
  for (const some of chunks(ids, 400)) {
    await tx.run(sql`UPDATE suppressions SET until_time = ${now} WHERE id IN (${list(some)})`)
  }
}

export async function beginSuppressions(tx: Tx, added: readonly Suppression[], now: string): Promise<void> {
  const rows = added.map((one) => sql`(${one.findingNo}, ${one.ownerNo}, ${one.source}, ${one.record}, ${now})`)
  const into = sql`INSERT INTO suppressions (finding_id, owner_id, source, record, from_time)`
  for (const insert of insertsOf(into, rows, sql`ON CONFLICT DO NOTHING`)) await tx.run(insert)
}
