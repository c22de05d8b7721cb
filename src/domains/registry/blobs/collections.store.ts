// The runs of the garbage collection: those that were asked for, the one that goes on, and the latest that have ended.
import { type Reader, sql, type Tx } from '#db/sql.ts'
import { type Collected, type Collection, collectionStates } from './collection.model.ts'

type Row = Collected & {
  id: string
  dryRun: number
  scheduled: number
  state: Collection['state']
  node: string
  problem: string
}

const columns = sql`
  id, dry_run AS "dryRun", scheduled, state, node, problem, links, blobs, bytes, uploads, files, file_bytes AS "fileBytes"`

const fromRow = ({ id, dryRun, scheduled, state, node, problem, ...collected }: Row): Collection => {
  return { id, dryRun: dryRun === 1, scheduled: scheduled === 1, state, node, problem, collected }
}

export async function insertCollection(
  tx: Tx,
  { id, dryRun, scheduled, now }: Pick<Collection, 'id' | 'dryRun' | 'scheduled'> & { now: string },
): Promise<void> {
  await tx.run(sql`
    INSERT INTO collections (id, dry_run, scheduled, request_time)
    VALUES (${id}, ${dryRun ? 1 : 0}, ${scheduled ? 1 : 0}, ${now})`)
}

export async function findCollection(reader: Reader, id: string): Promise<Collection | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM collections WHERE id = ${id}`)
  return row && fromRow(row)
}

/** Those that have not ended, the oldest first. */
export async function openCollections(reader: Reader): Promise<Collection[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM collections WHERE state < 2 ORDER BY request_time, id`)
  return rows.map(fromRow)
}

export async function beginCollection(
  tx: Tx,
  { id, collected }: Collection,
  { node, fence, now }: { node: string; fence: number; now: string },
): Promise<void> {
  await tx.run(sql`
    UPDATE collections SET state = ${collectionStates.running}, node = ${node}, fence = ${fence}, start_time = ${now},
           ${counts(collected)}
     WHERE id = ${id}`)
}

/** Says how far it has got. Nothing when another node has taken it over. */
export async function noteProgress(tx: Tx, id: string, fence: number, collected: Collected): Promise<void> {
  await tx.run(sql`UPDATE collections SET ${counts(collected)} WHERE id = ${id} AND fence = ${fence}`)
}

export async function endCollection(
  tx: Tx,
  id: string,
  fence: number,
  { problem, now, collected }: { problem: string; now: string; collected: Collected },
): Promise<void> {
  const state = problem === '' ? collectionStates.done : collectionStates.failed
  await tx.run(sql`
    UPDATE collections SET state = ${state}, problem = ${problem}, end_time = ${now}, ${counts(collected)}
     WHERE id = ${id} AND fence = ${fence}`)
}

/** Forgets all that have ended but the latest. */
export async function forgetCollections(tx: Tx, kept: number): Promise<void> {
  await tx.run(sql`
    DELETE FROM collections WHERE state >= 2 AND id NOT IN (
      SELECT id FROM collections ORDER BY request_time DESC, id DESC LIMIT ${kept})`)
}

function counts({ links, blobs, bytes, uploads, files, fileBytes }: Collected) {
  return sql`links = ${links}, blobs = ${blobs}, bytes = ${bytes}, uploads = ${uploads}, files = ${files},
             file_bytes = ${fileBytes}`
}
