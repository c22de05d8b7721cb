// Reads the data that findings are shown with. Data that several findings share is read once. Texts and version ranges are most
// of this data.
import { list, type Reader, sql } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import type { AffectedRow } from '../findings/findings.model.ts'
import { affectedColumns, toAffected } from '../findings/findings.store.ts'
import type { Component } from '../lists/lists.model.ts'
import { componentColumns } from '../lists/lists.store.ts'
import { vulnerabilityIds } from '../records/records.model.ts'
import type { Known, PastText, Suppressed } from './image-findings.model.ts'

/** A finding, independent of the package lists that contain it. */
export type FindingRow = {
  findingNo: number
  componentNo: number
  affectedNo: number
  state: number
  severity: number
  foundTime: string
  goneTime: string
}
/** Package that owns the finding's package in a list, and the package's locations in the image. */
export type PairRow = { ownerNo: number; locations: string }

export const findingColumns = sql`
  f.id AS "findingNo", f.component_id AS "componentNo", f.affected_id AS "affectedNo", f.state, f.severity,
  f.found_time AS "foundTime", f.gone_time AS "goneTime"`

export type Parts = {
  /** Reads the data of these findings into the cache. */
  need(rows: readonly FindingRow[]): Promise<void>
  /** Builds a finding from data that `need` has read. The finding has no suppressions and no accepted risks yet. */
  knownOf(row: FindingRow, pair: PairRow): Known
}

/** Cache of finding data for the lifetime of one result. */
export function createParts(reader: Reader): Parts {
  const components = new Map<number, Known['component']>()
  const affected = new Map<number, AffectedRow>()
  const records = new Map<number, Pick<Known, 'record' | 'source'>>()
  const times = new Map<string, string>()
  const once = (time: string): string => {
    const kept = times.get(time) ?? time
    times.set(time, kept)
    return kept
  }
  const paths = new Map([['', [] as string[]]])
  const pathsOf = (locations: string): string[] => {
    const kept = paths.get(locations) ?? (JSON.parse(locations) as string[])
    paths.set(locations, kept)
    return kept
  }
  return {
    async need(rows) {
      for (const some of missing(
        rows.map(({ componentNo }) => componentNo),
        components,
      )) {
        for (const row of await reader.all<Known['component']>(sql`
          SELECT ${componentColumns} FROM components c WHERE c.id IN (${list(some)})`)) {
          components.set(row.componentNo, row)
        }
      }
      for (const some of missing(
        rows.map(({ affectedNo }) => affectedNo),
        affected,
      )) {
        const affectedRows = await reader.all<Parameters<typeof toAffected>[0]>(sql`
          SELECT ${affectedColumns} FROM affected_packages a WHERE a.id IN (${list(some)})`)
        for (const one of affectedRows) affected.set(one.affectedNo, toAffected(one))
      }
      const about = rows.map(({ affectedNo }) => affected.get(affectedNo)!.recordNo)
      for (const some of missing(about, records)) {
        const pastOf = await pastTexts(reader, some)
        for (const one of await reader.all<RecordRow>(sql`
          SELECT ${recordColumns} FROM vulnerability_records r JOIN vulnerability_sources s ON s.id = r.source_id
           WHERE r.id IN (${list(some)})`)) {
          records.set(one.recordNo, fromRecordRow(one, pastOf.get(one.recordNo) ?? []))
        }
      }
    },
    knownOf({ findingNo, componentNo, affectedNo, state, severity, foundTime, goneTime }, { ownerNo, locations }) {
      const affectedEntry = affected.get(affectedNo)!
      return {
        ...{ findingNo, ownerNo, state, severity },
        foundTime: once(foundTime),
        goneTime: once(goneTime),
        component: components.get(componentNo)!,
        affected: affectedEntry,
        ...records.get(affectedEntry.recordNo)!,
        locations: pathsOf(locations),
        suppressed: [],
        accepted: [],
      }
    },
  }
}

/** IDs whose rows are not in the map yet, without duplicates, in chunks for one SQL statement. */
function missing(wanted: readonly number[], there: ReadonlyMap<number, unknown>): number[][] {
  return chunks(
    [...new Set(wanted)].filter((one) => !there.has(one)),
    atOnce,
  )
}

export const atOnce = 400

/** Former texts of some records, the oldest first. */
export async function pastTexts(reader: Reader, records: readonly number[]): Promise<Map<number, PastText[]>> {
  const rows = await reader.all<{ recordNo: number; untilTime: string; summary: string; references: string }>(sql`
    SELECT t.record_no AS "recordNo", t.until_time AS "untilTime", t.summary, t."references"
      FROM vulnerability_record_texts t WHERE t.record_no IN (${list(records)}) ORDER BY t.record_no, t.until_time`)
  const past = new Map<number, PastText[]>()
  for (const { recordNo, untilTime, summary, references } of rows) {
    const text = { untilTime, summary, references: JSON.parse(references) as string[] }
    past.set(recordNo, [...(past.get(recordNo) ?? []), text])
  }
  return past
}

type RecordRow = {
  recordNo: number
  id: string
  aliases: string
  upstream: string
  summary: string
  severities: string
  references: string
  publishTime: string
  source: string
}

const recordColumns = sql`
  r.id AS "recordNo", r.record_id AS id, r.aliases, r.upstream, r.summary, r.severities, r."references",
  r.publish_time AS "publishTime", s.name AS source`

function fromRecordRow(
  { id, summary, publishTime, source, ...row }: RecordRow,
  past: readonly PastText[],
): Pick<Known, 'record' | 'source'> {
  const named = { id, aliases: JSON.parse(row.aliases) as string[], upstream: JSON.parse(row.upstream) as string[] }
  return {
    source,
    record: {
      ...named,
      ...{ summary, publishTime, past },
      vulnerabilities: vulnerabilityIds(named),
      severities: JSON.parse(row.severities) as Known['record']['severities'],
      references: JSON.parse(row.references) as string[],
    },
  }
}

/** Time range in which a finding is suppressed in packages with one owner, and the record that is the reason. */
export type SuppressedRow = Omit<Suppressed, 'owner'> & Component & { findingNo: number; ownerNo: number }

export const suppressedColumns = sql`
  s.finding_id AS "findingNo", s.owner_id AS "ownerNo", s.from_time AS "fromTime", s.until_time AS "untilTime", s.source,
  s.record, ${componentColumns}`

export function toSuppressed({ findingNo, ownerNo, fromTime, untilTime, source, record, ...owner }: SuppressedRow) {
  return { findingNo, ownerNo, fromTime, untilTime, source, record, owner }
}
