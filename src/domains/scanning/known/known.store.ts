import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Component } from '../lists/lists.model.ts'
import { componentColumns } from '../lists/lists.store.ts'
import type { AffectedRow } from '../matching/findings.model.ts'
import { affectedColumns, toAffected } from '../matching/findings.store.ts'
import type { Known, Suppressed } from './known.model.ts'

type Row = {
  findingNo: number
  foundState: number
  level: number
  foundTime: string
  goneTime: string
  componentNo: number
  packageName: string
  componentEcosystem: string
  recordId: string
  aliases: string
  upstream: string
  summary: string
  severities: string
  references: string
  publishTime: string
  source: string
  locations: string
  ownerNo: number
} & Omit<Component, 'name' | 'ecosystem'> &
  Parameters<typeof toAffected>[0]

const columns = sql`
  f.id AS "findingNo", f.state AS "foundState", f.severity AS level, f.found_time AS "foundTime",
  f.gone_time AS "goneTime", ${componentColumns}, c.name AS "packageName", c.ecosystem AS "componentEcosystem",
  ${affectedColumns}, r.record_id AS "recordId", r.aliases, r.upstream, r.summary, r.severities, r."references",
  r.publish_time AS "publishTime", s.name AS source, l.locations, l.owner_id AS "ownerNo"`

function fromRow(row: Row): Known {
  const affected: AffectedRow = toAffected(row)
  const { kind, version, origin, originVersion, arch } = row
  return {
    findingNo: Number(row.findingNo),
    state: Number(row.foundState),
    severity: Number(row.level),
    foundTime: row.foundTime,
    goneTime: row.goneTime,
    component: {
      componentNo: Number(row.componentNo),
      ...{ kind, version, origin, originVersion, arch },
      name: row.packageName,
      ecosystem: row.componentEcosystem,
    },
    affected,
    record: {
      id: row.recordId,
      aliases: JSON.parse(row.aliases) as string[],
      upstream: JSON.parse(row.upstream) as string[],
      summary: row.summary,
      severities: JSON.parse(row.severities) as Known['record']['severities'],
      references: JSON.parse(row.references) as string[],
      publishTime: row.publishTime,
    },
    source: row.source,
    locations: row.locations === '' ? [] : (JSON.parse(row.locations) as string[]),
    ownerNo: Number(row.ownerNo),
    suppressed: [],
  }
}

/** All findings that a list has or had, with what counts for everybody and for some organisations, in a lasting order. */
export async function findKnown(
  reader: Reader,
  listNo: number,
  places: readonly string[],
  most: number,
): Promise<Known[]> {
  return selectKnown(reader, listNo, places, { most, when: sql`1 = 1` })
}

/** Those that a list has now. */
export async function findKnownNow(
  reader: Reader,
  listNo: number,
  places: readonly string[],
  most: number,
): Promise<Known[]> {
  return selectKnown(reader, listNo, places, { most, when: sql`f.gone_time = ''` })
}

async function selectKnown(
  reader: Reader,
  listNo: number,
  places: readonly string[],
  { most, when }: { most: number; when: Sql },
): Promise<Known[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns}
      FROM list_components l
      JOIN findings f ON f.component_id = l.component_id
      JOIN components c ON c.id = f.component_id
      JOIN affected_packages a ON a.id = f.affected_id
      JOIN vulnerability_records r ON r.id = a.record_no
      JOIN vulnerability_sources s ON s.id = r.source_id
     WHERE l.list_id = ${listNo} AND f.place IN (${list(['', ...places])}) AND ${when}
     ORDER BY f.id LIMIT ${most}`)
  const known = rows.map(fromRow)
  if (known.every(({ ownerNo }) => ownerNo === 0)) return known
  const suppressed = Map.groupBy(await suppressedIn(reader, listNo, most), ({ findingNo }) => findingNo)
  return known.map((one) => ({ ...one, suppressed: suppressed.get(one.findingNo) ?? [] }))
}

type SuppressedRow = Omit<Suppressed, 'owner'> & Component & { findingNo: number }

/** What did not count in a list, and when. */
async function suppressedIn(reader: Reader, listNo: number, most: number) {
  const rows = await reader.all<SuppressedRow>(sql`
    SELECT s.finding_id AS "findingNo", s.from_time AS "fromTime", s.until_time AS "untilTime", s.source, s.record,
           ${componentColumns}
      FROM list_components l
      JOIN findings f ON f.component_id = l.component_id
      JOIN suppressions s ON s.finding_id = f.id AND s.owner_id = l.owner_id
      JOIN components c ON c.id = s.owner_id
     WHERE l.list_id = ${listNo} AND l.owner_id <> 0 ORDER BY s.id LIMIT ${most}`)
  return rows.map(({ findingNo, fromTime, untilTime, source, record, ...owner }) => ({
    ...{ findingNo: Number(findingNo), fromTime, untilTime, source, record, owner },
  }))
}

export type LightFinding = {
  componentNo: number
  affectedNo: number
  place: string
  state: number
  severity: number
  recordId: string
  aliases: string
  upstream: string
  /** 1: it does not count in this list. */
  suppressed: number
}

/** The findings that a list has now, as far as counts need them, behind the last of the page before, in order. */
export async function findLight(
  reader: Reader,
  listNo: number,
  { after, most }: { after: LightFinding | undefined; most: number },
): Promise<LightFinding[]> {
  const [component, affected] = [Number(after?.componentNo ?? 0), Number(after?.affectedNo ?? 0)]
  return reader.all<LightFinding>(sql`
    SELECT f.component_id AS "componentNo", f.affected_id AS "affectedNo", f.place, f.state, f.severity,
           r.record_id AS "recordId", r.aliases, r.upstream,
           CASE WHEN l.owner_id <> 0 AND EXISTS (
                SELECT 1 FROM suppressions s
                 WHERE s.finding_id = f.id AND s.owner_id = l.owner_id AND s.until_time = '') THEN 1 ELSE 0 END AS suppressed
      FROM list_components l
      JOIN findings f ON f.component_id = l.component_id
      JOIN affected_packages a ON a.id = f.affected_id
      JOIN vulnerability_records r ON r.id = a.record_no
     WHERE l.list_id = ${listNo} AND f.gone_time = '' AND l.component_id >= ${component}
       AND (l.component_id > ${component} OR f.affected_id > ${affected})
     ORDER BY l.component_id, f.affected_id LIMIT ${most}`)
}

export type Counts = {
  critical: number
  high: number
  medium: number
  low: number
  negligible: number
  unknown: number
  gaps: number
}

export async function saveCounts(
  tx: Tx,
  listNo: number,
  counts: ReadonlyMap<string, Counts>,
  now: string,
): Promise<void> {
  for (const [place, one] of counts) {
    await tx.run(sql`
      INSERT INTO list_severities (list_id, place, critical, high, medium, low, negligible, unknown, gaps, change_time)
      VALUES (${listNo}, ${place}, ${one.critical}, ${one.high}, ${one.medium}, ${one.low}, ${one.negligible},
              ${one.unknown}, ${one.gaps}, ${now})
          ON CONFLICT (list_id, place) DO UPDATE SET critical = excluded.critical, high = excluded.high,
             medium = excluded.medium, low = excluded.low, negligible = excluded.negligible,
             unknown = excluded.unknown, gaps = excluded.gaps, change_time = excluded.change_time
           WHERE list_severities.critical <> excluded.critical OR list_severities.high <> excluded.high
              OR list_severities.medium <> excluded.medium OR list_severities.low <> excluded.low
              OR list_severities.negligible <> excluded.negligible OR list_severities.unknown <> excluded.unknown
              OR list_severities.gaps <> excluded.gaps`)
  }
  await tx.run(sql`
    DELETE FROM list_severities WHERE list_id = ${listNo} AND place NOT IN (${list([...counts.keys()])})`)
}

/** The counts of a list by place. */
export async function findCounts(reader: Reader, listNo: number): Promise<Map<string, Counts>> {
  const rows = await reader.all<Counts & { place: string }>(sql`
    SELECT place, critical, high, medium, low, negligible, unknown, gaps
      FROM list_severities WHERE list_id = ${listNo} ORDER BY place`)
  return new Map(
    rows.map(({ place, ...counts }) => {
      const numbers = Object.entries(counts).map(([name, count]) => [name, Number(count)])
      return [place, Object.fromEntries(numbers) as Counts]
    }),
  )
}
