import { list, type Reader, sql } from '#db/sql.ts'

export type NamedRecord = { id: string; aliases: string[]; upstream: string[] }

/**
 * Records that hold now and go by a name, some of them. Those of the source `own` only where they are about something in
 * one of the places.
 */
export async function recordsNamed(
  reader: Reader,
  name: string,
  { own, places, most }: { own: string; places: readonly string[]; most: number },
): Promise<NamedRecord[]> {
  const rows = await reader.all<{ id: string; aliases: string; upstream: string }>(sql`
    SELECT r.record_id AS id, r.aliases, r.upstream
      FROM vulnerability_record_names n
      JOIN vulnerability_records r ON r.id = n.record_no
      JOIN vulnerability_sources s ON s.id = r.source_id
     WHERE n.name = ${name}
       AND (s.name <> ${own} OR EXISTS (SELECT 1 FROM affected_packages a
                                          WHERE a.record_no = r.id AND a.place IN (${list(['', ...places])})))
     LIMIT ${most}`)
  return rows.map(({ id, aliases, upstream }) => ({
    id,
    aliases: JSON.parse(aliases) as string[],
    upstream: JSON.parse(upstream) as string[],
  }))
}
