import { list, type Reader, sql } from '#db/sql.ts'
import type { NamedRecord } from '../records/records.model.ts'
import { type NamedRow, namedColumns, toNamed } from '../records/records.store.ts'

/**
 * Records that hold now and go by a name, some of them. Those of the source `own` only where they are about something in
 * one of the places.
 */
export async function recordsNamed(
  reader: Reader,
  name: string,
  { own, places, most }: { own: string; places: readonly string[]; most: number },
): Promise<NamedRecord[]> {
  const rows = await reader.all<NamedRow>(sql`
    SELECT ${namedColumns}
      FROM vulnerability_record_names n
      JOIN vulnerability_records r ON r.id = n.record_no
      JOIN vulnerability_sources s ON s.id = r.source_id
     WHERE n.name = ${name}
       AND (s.name <> ${own} OR EXISTS (SELECT 1 FROM affected_packages a
                                          WHERE a.record_no = r.id AND a.place IN (${list(['', ...places])})))
     LIMIT ${most}`)
  return rows.map(toNamed)
}
