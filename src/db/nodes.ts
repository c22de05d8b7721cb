import { type Reader, sql, type Tx } from './sql.ts'

/** What a server says of itself. `url` is what clients call it, `localUrl` where it listens. */
export type NodeFacts = { version: string; url: string; localUrl: string }

/** Says that the node is there. `now` is the database's time. */
export async function beatNode(
  tx: Tx,
  id: string,
  { version, url, localUrl }: NodeFacts,
  { now, offsetMs }: { now: string; offsetMs: number },
): Promise<void> {
  await tx.run(sql`
    INSERT INTO nodes (id, version, url, local_url, start_time, beat_time, beat, clock_offset_ms)
    VALUES (${id}, ${version}, ${url}, ${localUrl}, ${now}, ${now}, 1, ${offsetMs})
        ON CONFLICT (id) DO UPDATE SET beat = nodes.beat + 1, beat_time = excluded.beat_time,
           clock_offset_ms = excluded.clock_offset_ms`)
}

export async function nodeBeats(reader: Reader): Promise<Map<string, number>> {
  const rows = await reader.all<{ id: string; beat: number }>(sql`SELECT id, beat FROM nodes`)
  return new Map(rows.map(({ id, beat }) => [id, beat]))
}

export async function deleteNode(tx: Tx, id: string): Promise<void> {
  await tx.run(sql`DELETE FROM nodes WHERE id = ${id}`)
}

/** Forgets nodes that have said nothing since `before`, by the database's time. */
export async function deleteSilentNodes(tx: Tx, before: string): Promise<number> {
  return tx.run(sql`DELETE FROM nodes WHERE beat_time < ${before}`)
}

/**
 * By how many milliseconds the database's clock is ahead of this machine's; 0 where the difference is no larger than what
 * the question took. An embedded database has ours.
 */
export async function clockOffset(reader: Reader & { engine: 'sqlite' | 'postgres' }): Promise<number> {
  if (reader.engine === 'sqlite') return 0
  const sent = Date.now()
  const row = await reader.get<{ now: number }>(sql`
    SELECT CAST(floor(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT) AS now`)
  const arrived = Date.now()
  if (row!.now >= sent && row!.now <= arrived) return 0
  return Math.round(row!.now - (sent + arrived) / 2)
}
