import { exists } from '#db/bulk.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import { type Collected, type Collection, collectionStates } from './collection.model.ts'
import { removeLink, uidOfRepo } from './usage.store.ts'

export type Link = { repo: number; digest: string }

/** A page of links in the order of an index. `kept` is 1 for a link that must be kept. */
export async function pageOfLinks(reader: Reader, after: Link, cutoff: string, most: number) {
  return reader.all<Link & { kept: number }>(sql`
    SELECT r.repo_id AS repo, r.digest,
           CASE WHEN ${isLinkNeeded(cutoff)} THEN 1 ELSE 0 END AS kept
      FROM repo_blobs r
     WHERE (r.repo_id, r.digest) > (${after.repo}, ${after.digest})
     ORDER BY r.repo_id, r.digest LIMIT ${most}`)
}

/** Deletes a link. Returns false if the link must be kept by now. */
export async function deleteUnneededLink(tx: Tx, { repo, digest }: Link, cutoff: string): Promise<boolean> {
  const deleted = await tx.run(sql`
    DELETE FROM repo_blobs AS r WHERE r.repo_id = ${repo} AND r.digest = ${digest} AND NOT (${isLinkNeeded(cutoff)})`)
  if (deleted === 0) return false
  const { uid } = (await tx.get<{ uid: string }>(sql`SELECT ${uidOfRepo} AS uid FROM repos WHERE id = ${repo}`))!
  await removeLink(tx, rootOf(uid), digest)
  return true
}

/**
 * True if a link must be kept. Either a manifest of the repository needs or lists the blob, a scanner report is in the blob, or a
 * push touched the link during the grace period.
 */
function isLinkNeeded(cutoff: string) {
  return sql`r.touch_time >= ${cutoff} OR EXISTS (
    SELECT 1 FROM manifest_links l WHERE l.repo_id = r.repo_id AND l.digest = r.digest)
    OR EXISTS (SELECT 1 FROM scan_reports p WHERE p.repo_id = r.repo_id AND p.raw_digest = r.digest)`
}

type Stored = { digest: string; size: number; location: string }

/** A page of all blobs. `kept` is 1 if a repository still has the blob after the deletion of unneeded links. */
export async function pageOfBlobs(reader: Reader, after: string, cutoff: string, most: number) {
  return reader.all<Stored & { kept: number }>(sql`
    SELECT b.digest, b.size, b.location,
           CASE WHEN EXISTS (SELECT 1 FROM repo_blobs r WHERE r.digest = b.digest AND (${isLinkNeeded(cutoff)}))
                THEN 1 ELSE 0 END AS kept
      FROM blobs b
     WHERE b.digest > ${after}
     ORDER BY b.digest LIMIT ${most}`)
}

/** Deletes a blob. Returns false if a repository has linked the blob again. */
export async function deleteUnlinkedBlob(tx: Tx, { digest, location }: Stored): Promise<boolean> {
  const deleted = await tx.run(sql`
    DELETE FROM blobs WHERE digest = ${digest} AND location = ${location}
       AND NOT EXISTS (SELECT 1 FROM repo_blobs r WHERE r.digest = ${digest})`)
  return deleted === 1
}

/** Uploads without activity since the cutoff, the oldest first. */
export async function staleUploads(
  reader: Reader,
  cutoff: string,
  after: string,
  most: number,
): Promise<{ uid: string }[]> {
  return reader.all(sql`
    SELECT uid FROM uploads WHERE update_time < ${cutoff} AND uid > ${after}
     ORDER BY uid LIMIT ${most}`)
}

export async function isStale(reader: Reader, upload: string, cutoff: string): Promise<boolean> {
  return exists(reader, sql`FROM uploads WHERE uid = ${upload} AND update_time < ${cutoff}`)
}

/** The given locations that a row of the database refers to. */
export async function knownLocations(reader: Reader, locations: readonly string[]): Promise<Set<string>> {
  const rows = await reader.all<{ location: string }>(sql`
    SELECT location FROM blobs WHERE location IN (${list(locations)})
     UNION ALL
    SELECT location FROM upload_parts WHERE location IN (${list(locations)})`)
  return new Set(rows.map(({ location }) => location))
}

/** The given locations that are already in the trash. */
export async function trashedLocations(reader: Reader, locations: readonly string[]): Promise<Set<string>> {
  const rows = await reader.all<{ location: string }>(sql`
    SELECT location FROM blob_trash WHERE location IN (${list(locations)})`)
  return new Set(rows.map(({ location }) => location))
}

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

/** Unfinished collections, the oldest first. */
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

/** Stores the progress of a collection. Does nothing if another server has taken over the collection. */
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

/** Deletes finished collections except the latest `kept`. */
export async function forgetCollections(tx: Tx, kept: number): Promise<void> {
  await tx.run(sql`
    DELETE FROM collections WHERE state >= 2 AND id NOT IN (
      SELECT id FROM collections ORDER BY request_time DESC, id DESC LIMIT ${kept})`)
}

function counts({ links, blobs, bytes, uploads, files, fileBytes }: Collected) {
  return sql`links = ${links}, blobs = ${blobs}, bytes = ${bytes}, uploads = ${uploads}, files = ${files},
             file_bytes = ${fileBytes}`
}
