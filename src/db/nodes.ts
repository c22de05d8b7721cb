import { type Reader, sql, type Tx } from './sql.ts'

/** Facts that a server announces. `url` is the URL for clients, and `localUrl` is its own address. */
export type NodeFacts = { version: string; url: string; localUrl: string }

/** Writes a heartbeat of the node. `now` is the time of the database. */
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

export type NodeBeat = { beat: number; offsetMs: number }

export async function nodeBeats(reader: Reader): Promise<Map<string, NodeBeat>> {
  const rows = await reader.all<NodeBeat & { id: string }>(sql`
    SELECT id, beat, clock_offset_ms AS "offsetMs" FROM nodes`)
  return new Map(rows.map(({ id, ...one }) => [id, one]))
}

export async function deleteNode(tx: Tx, id: string): Promise<void> {
  await tx.run(sql`DELETE FROM nodes WHERE id = ${id}`)
}

/** Deletes nodes without a heartbeat since `before`, by the time of the database. */
export async function deleteSilentNodes(tx: Tx, before: string): Promise<number> {
  return tx.run(sql`DELETE FROM nodes WHERE beat_time < ${before}`)
}

export type NodeRow = { id: string; url: string; version: string; beat: number }

/** Servers with a row. Some of them may no longer be running. */
export function listNodes(reader: Reader): Promise<NodeRow[]> {
  return reader.all<NodeRow>(sql`SELECT id, url, version, beat FROM nodes ORDER BY id`)
}

/** URL for clients, from the server with the latest heartbeat. Empty if there is none. */
export async function servedUrl(reader: Reader): Promise<string> {
  const row = await reader.get<{ url: string }>(sql`
    SELECT url FROM nodes WHERE url <> '' ORDER BY beat_time DESC, id LIMIT 1`)
  return row?.url ?? ''
}

/**
 * First running server that `concerns` selects. Waits for a heartbeat, since a killed server keeps its row. Returns `undefined`
 * after `leaseMs` without a heartbeat of any of them.
 */
export async function liveNode(
  db: Reader,
  concerns: (node: NodeRow) => boolean,
  leaseMs: number,
): Promise<NodeRow | undefined> {
  const first = new Map((await listNodes(db)).filter(concerns).map((node) => [node.id, node.beat]))
  const pauseMs = Math.max(10, leaseMs / 16)
  for (let waited = 0; first.size > 0 && waited <= leaseMs; waited += pauseMs) {
    const now = (await listNodes(db)).filter(concerns)
    // A server whose row is new is running too.
    const alive = now.find(({ id, beat }) => beat !== first.get(id))
    if (alive) return alive
    // A server that stops deletes its row.
    for (const id of first.keys()) if (!now.some((node) => node.id === id)) first.delete(id)
    if (first.size > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  return undefined
}

/**
 * Blocks starts and heartbeats of servers until the transaction ends. Returns the first server that `concerns` selects and that
 * has started or sent a heartbeat since `still` was read.
 */
export async function startedSince(
  tx: Tx,
  still: ReadonlyMap<string, NodeBeat>,
  concerns: (node: NodeRow) => boolean,
): Promise<NodeRow | undefined> {
  // A SQLite database needs no lock here, since only one server can open its file.
  if (tx.engine === 'sqlite') return undefined
  await tx.run(sql`LOCK TABLE nodes IN EXCLUSIVE MODE`)
  return (await listNodes(tx)).find((node) => concerns(node) && still.get(node.id)?.beat !== node.beat)
}
