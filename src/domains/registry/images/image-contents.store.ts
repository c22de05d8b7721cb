import { exists } from '#db/bulk.ts'
import { locking } from '#db/row-locks.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { nameOf } from '#lib/naming/numbered.ts'
import { rootOf } from '#lib/uid.ts'
import {
  type ContentsGap,
  type ContentsRecord,
  contentsSources,
  contentsStates,
  readerVersion,
} from './image-contents.model.ts'

type Row = Omit<ContentsRecord, 'state' | 'source' | 'distribution' | 'gaps'> & {
  state: number
  source: number
  gaps: string
  distribution: string
  distributionVersion: string
}

const earlier = Array.from({ length: readerVersion }, (_, i) => i)

const perStatement = 100

const columns = sql`
  c.digest, c.state, c.source, c.packages, c.distribution, c.distribution_version AS "distributionVersion",
  c.reason, c.message, c.gaps`

function fromRow({ state, source, gaps, distribution, distributionVersion, ...row }: Row): ContentsRecord {
  return {
    ...row,
    state: nameOf(contentsStates, state),
    source: nameOf(contentsSources, source),
    gaps: JSON.parse(gaps) as ContentsGap[],
    distribution: { id: distribution, version: distributionVersion },
  }
}

/** Contents of these digests, in no particular order. Digests that were not read are left out. */
export async function findContents(
  reader: Reader,
  repo: number,
  digests: readonly string[],
): Promise<ContentsRecord[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM image_contents c WHERE c.repo_id = ${repo} AND c.digest IN (${list(digests)})`)
  return rows.map(fromRow)
}

/**
 * Repositories in which the contents of this digest are known, together with these contents. Repositories are ordered by number
 * and begin after `after`.
 */
export async function findEverywhere(
  reader: Reader,
  digest: string,
  { after, most }: { after: number; most: number },
): Promise<(ContentsRecord & { repo: number; repoUid: string })[]> {
  const rows = await reader.all<Row & { repo: number; repoUid: string }>(sql`
    SELECT ${columns}, r.id AS repo, r.uid AS "repoUid" FROM image_contents c JOIN repos r ON r.id = c.repo_id
     WHERE c.digest = ${digest} AND c.repo_id > ${after} AND c.state = ${contentsStates.known}
     ORDER BY c.repo_id LIMIT ${most}`)
  return rows.map(({ repo, repoUid, ...row }) => ({ ...fromRow(row), repo: Number(repo), repoUid }))
}

/** Digests of the images of a repository with known contents. Indexes whose contents come from their images are left out. */
export async function listKnownImages(reader: Reader, repo: number, most: number): Promise<string[]> {
  const rows = await reader.all<{ digest: string }>(sql`
    SELECT digest FROM image_contents
     WHERE repo_id = ${repo} AND state = ${contentsStates.known} AND source NOT IN (${contentsSources.images}, ${contentsSources.languagesOfImages})
     ORDER BY digest LIMIT ${most}`)
  return rows.map(({ digest }) => digest)
}

export async function saveContents(tx: Tx, repo: number, found: ContentsRecord, now: string): Promise<void> {
  const { state, source, distribution } = found
  await tx.run(sql`
    INSERT INTO image_contents (repo_id, digest, state, source, packages, distribution, distribution_version, reason,
           message, read_time, reader, gaps)
    VALUES (${repo}, ${found.digest}, ${contentsStates[state]}, ${contentsSources[source]}, ${found.packages},
            ${distribution.id}, ${distribution.version}, ${found.reason}, ${found.message}, ${now},
            ${readerVersion}, ${JSON.stringify(found.gaps)})
        ON CONFLICT (repo_id, digest) DO UPDATE SET state = excluded.state, source = excluded.source,
           packages = excluded.packages, distribution = excluded.distribution,
           distribution_version = excluded.distribution_version, reason = excluded.reason,
           message = excluded.message, read_time = excluded.read_time, reader = excluded.reader,
           gaps = excluded.gaps`)
}

/** Stores how many bytes a pull of the image transfers. */
export async function saveSize(tx: Tx, repo: number, digest: string, size: number): Promise<void> {
  await tx.run(sql`UPDATE image_contents SET size = ${size} WHERE repo_id = ${repo} AND digest = ${digest}`)
}

/** Stored sizes by digest. Images without a stored size are left out. */
export async function findSizes(reader: Reader, repo: number, digests: readonly string[]) {
  const rows = await reader.all<{ digest: string; size: number }>(sql`
    SELECT digest, size FROM image_contents WHERE repo_id = ${repo} AND digest IN (${list(digests)}) AND size >= 0`)
  return rows.map(({ digest, size }) => ({ digest, size: Number(size) }))
}

/** Stores contents that were valid until now as former contents. */
export async function keepPast(tx: Tx, repo: number, before: ContentsRecord, now: string): Promise<void> {
  const { state, source, distribution } = before
  await tx.run(sql`
    INSERT INTO past_contents (repo_id, digest, until_time, state, source, packages, distribution, distribution_version,
           gaps)
    VALUES (${repo}, ${before.digest}, ${now}, ${contentsStates[state]}, ${contentsSources[source]}, ${before.packages},
            ${distribution.id}, ${distribution.version}, ${JSON.stringify(before.gaps)})
        ON CONFLICT (repo_id, digest, until_time) DO NOTHING`)
}

/** Former contents of these images, for each image the newest first. */
export async function findPast(
  reader: Reader,
  repo: number,
  digests: readonly string[],
  most: number,
): Promise<(ContentsRecord & { untilTime: string })[]> {
  const rows = await reader.all<Row & { untilTime: string }>(sql`
    SELECT c.digest, c.state, c.source, c.packages, c.distribution, c.distribution_version AS "distributionVersion",
           '' AS reason, '' AS message, c.gaps, c.until_time AS "untilTime"
      FROM past_contents c WHERE c.repo_id = ${repo} AND c.digest IN (${list(digests)})
     ORDER BY c.repo_id DESC, c.digest DESC, c.until_time DESC LIMIT ${most}`)
  return rows.map(({ untilTime, ...row }) => ({ ...fromRow(row), untilTime }))
}

/** True if an image has the package list of this hash, or had it and its repository still exists. */
export async function isInUse(reader: Reader, hash: string): Promise<boolean> {
  const now = await reader.get(
    sql`SELECT 1 AS found FROM image_contents WHERE packages <> '' AND packages = ${hash} LIMIT 1`,
  )
  return (
    now !== undefined ||
    (await reader.get(sql`
      SELECT 1 AS found FROM past_contents WHERE packages <> '' AND packages = ${hash} LIMIT 1`)) !== undefined
  )
}

/**
 * Organizations of images that have, or had, the package list of this hash. Examines at most `most` images. Deleted repositories
 * do not count.
 */
export async function organizationsWith(reader: Reader, hash: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ uid: string }>(sql`
    SELECT replace(r.uid, '!', '') AS uid
      FROM (SELECT c.repo_id FROM image_contents c WHERE c.packages = ${hash} AND c.packages <> '' LIMIT ${most}) AS matches
      JOIN repos r ON r.id = matches.repo_id
     UNION ALL
    SELECT replace(r.uid, '!', '') AS uid
      FROM (SELECT p.repo_id FROM past_contents p WHERE p.packages = ${hash} AND p.packages <> '' LIMIT ${most}) AS matches
      JOIN repos r ON r.id = matches.repo_id`)
  return [...new Set(rows.map(({ uid }) => rootOf(uid)))].sort()
}

/** Deletes a package list unless an image has it. */
export async function dropPackages(tx: Tx, hash: string): Promise<void> {
  await tx.run(sql`
    DELETE FROM package_lists
     WHERE hash = ${hash}
       AND NOT EXISTS (SELECT 1 FROM image_contents o WHERE o.packages = package_lists.hash AND o.packages <> '')`)
}

/** Stores a package list and locks it. No other transaction can delete the list as unused before this transaction ends. */
export async function savePackages(tx: Tx, hash: string, packages: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO package_lists (hash, packages) VALUES (${hash}, ${packages})
        ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash WHERE 1 = 0`)
}

export async function findPackages(reader: Reader, hash: string): Promise<string | undefined> {
  const row = await reader.get<{ packages: string }>(sql`SELECT packages FROM package_lists WHERE hash = ${hash}`)
  return row?.packages
}

/** Package list with one of the organizations that have it. */
export type ListWithOrganization = {
  packages: string
  distribution: { id: string; version: string }
  organization: string
}

/** The next package list after the hash, once for each distribution that uses the list. */
export async function nextContents(reader: Reader, after: string): Promise<ListWithOrganization[]> {
  type Kept = { packages: string; id: string; version: string; organization: string }
  const rows = await reader.all<Kept>(sql`
    SELECT c.packages, c.distribution AS id, c.distribution_version AS version, min(${organization}) AS organization
      FROM image_contents c JOIN repos r ON r.id = c.repo_id
     WHERE c.packages <> '' AND c.packages = (
             SELECT n.packages FROM image_contents n WHERE n.packages <> '' AND n.packages > ${after}
              ORDER BY n.packages LIMIT 1)
     GROUP BY c.packages, c.distribution, c.distribution_version`)
  return rows.map(({ packages, id, version, organization: one }) => {
    return { packages, distribution: { id, version }, organization: one }
  })
}

/** Organization of a repository: the first part of its uid. */
export const organization = sql`substr(r.uid, 1, 40)`

/** Queues the image, or moves it to the front of the queue. The result of a read in progress is then discarded. */
export async function queueRead(tx: Tx, repo: number, digest: string, dueTime: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO image_reads (repo_id, digest, due_time, attempts, organization)
    SELECT r.id, CAST(${digest} AS TEXT), CAST(${dueTime} AS TEXT), CAST(0 AS BIGINT), ${organization}
      FROM repos r WHERE r.id = ${repo}
        ON CONFLICT (repo_id, digest) DO UPDATE SET due_time = excluded.due_time, attempts = 0, owner = '', again = 0,
           fence = image_reads.fence + 1`)
}

/** Queues an image to be read again, after all images that were never read. Does nothing if the image is queued already. */
export async function queueReadAgain(tx: Tx, repo: number, digest: string, dueTime: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO image_reads (repo_id, digest, due_time, attempts, organization, again)
    SELECT r.id, CAST(${digest} AS TEXT), CAST(${dueTime} AS TEXT), CAST(0 AS BIGINT), ${organization}, 1
      FROM repos r WHERE r.id = ${repo}
        ON CONFLICT (repo_id, digest) DO NOTHING`)
}

/** Queues every index of the repository that lists the manifest. */
export async function queueIndexesWith(tx: Tx, repo: number, digest: string, dueTime: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO image_reads (repo_id, digest, due_time, attempts, organization)
    SELECT l.repo_id, l.manifest, CAST(${dueTime} AS TEXT), CAST(0 AS BIGINT), ${organization}
      FROM manifest_links l JOIN repos r ON r.id = l.repo_id
     WHERE l.repo_id = ${repo} AND l.digest = ${digest} AND l.kind = 1
        ON CONFLICT (repo_id, digest) DO UPDATE SET due_time = excluded.due_time, attempts = 0, owner = '',
           again = 0, fence = image_reads.fence + 1`)
}

/** Image in the queue. `owner` is the server that reads the image, or empty. `fence` increases with every change of owner. */
export type DueRead = {
  repo: number
  organization: string
  digest: string
  dueTime: string
  attempts: number
  owner: string
  fence: number
  /** 1 if an earlier version of the reader has read the image. The earlier result is valid until the new read ends. */
  again: number
}

const readColumns = sql`repo_id AS repo, organization, digest, due_time AS "dueTime", attempts, owner, fence, again`

/** True if an image is due that no server reads. `again` is 1 for images to be read again. */
export async function isAnyDue(reader: Reader, again: number, now: string): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM image_reads WHERE owner = '' AND again = ${again} AND due_time <= ${now}
     ORDER BY owner, again, due_time LIMIT 1`)
  return row !== undefined
}

/**
 * The earliest queued image of the next organization, even if the image is not due yet. Images that a server reads are left out.
 */
export async function nextRead(reader: Reader, again: number, after: string): Promise<DueRead | undefined> {
  return reader.get<DueRead>(sql`
    SELECT ${readColumns} FROM image_reads WHERE owner = '' AND again = ${again} AND organization > ${after}
     ORDER BY owner, again, organization, due_time, repo_id, digest LIMIT 1`)
}

/** Images that servers have claimed. */
export async function ownedReads(reader: Reader): Promise<DueRead[]> {
  return reader.all<DueRead>(
    sql`SELECT ${readColumns} FROM image_reads WHERE owner > '' ORDER BY owner, again, due_time`,
  )
}

/** Claims a queued image. Returns undefined if its row in the queue has changed since it was read. */
export async function claimRead(tx: Tx, seen: DueRead, node: string): Promise<DueRead | undefined> {
  return tx.get<DueRead>(sql`
    UPDATE image_reads SET owner = ${node}, fence = fence + 1, attempts = attempts + 1
     WHERE repo_id = ${seen.repo} AND digest = ${seen.digest} AND fence = ${seen.fence}
    RETURNING ${readColumns}`)
}

/**
 * Releases an image, so that it is read at `dueTime` or later. Does nothing if another server owns the image, or if the image was
 * queued again.
 */
export async function requeueRead(tx: Tx, read: DueRead, to: { dueTime: string; attempts: number }): Promise<void> {
  await tx.run(sql`
    UPDATE image_reads SET owner = '', fence = fence + 1, due_time = ${to.dueTime}, attempts = ${to.attempts}
     WHERE repo_id = ${read.repo} AND digest = ${read.digest} AND fence = ${read.fence}`)
}

/** Removes an image from the queue. Returns false if another server owns the image, or if the image was queued again. */
export async function endRead(tx: Tx, { repo, digest, fence }: DueRead): Promise<boolean> {
  const ended = await tx.run(sql`
    DELETE FROM image_reads WHERE repo_id = ${repo} AND digest = ${digest} AND fence = ${fence}`)
  return ended === 1
}

/** True if one of the images is queued or being read. */
export async function isQueued(reader: Reader, repo: number, digests: readonly string[]): Promise<boolean> {
  for (const some of chunks(digests, perStatement)) {
    const row = await reader.get(sql`
      SELECT 1 AS found FROM image_reads WHERE repo_id = ${repo} AND digest IN (${list(some)}) LIMIT 1`)
    if (row) return true
  }
  return false
}

/** Types of a manifest. Returns undefined if the repository does not have it. */
export async function typesOf(reader: Reader, repo: number, digest: string) {
  return reader.get<{ mediaType: string; artifactType: string }>(sql`
    SELECT media_type AS "mediaType", artifact_type AS "artifactType"
      FROM manifests WHERE repo_id = ${repo} AND digest = ${digest}`)
}

/** Images of a repository that an earlier version of the reader has read, and that are not queued to be read again. */
export async function listOutdated(reader: Reader, repo: number, most: number): Promise<string[]> {
  const rows = await reader.all<{ digest: string }>(sql`
    SELECT c.digest FROM image_contents c
     WHERE c.repo_id = ${repo} AND c.reader IN (${list(earlier)})
       AND NOT EXISTS (SELECT 1 FROM image_reads q WHERE q.repo_id = c.repo_id AND q.digest = c.digest)
     LIMIT ${most}`)
  return rows.map(({ digest }) => digest)
}

/** Number of images of an organization that are queued to be read again, up to `most`. */
export async function countAgain(reader: Reader, organization: string, most: number): Promise<number> {
  const rows = await reader.all(sql`
    SELECT 1 AS found FROM image_reads WHERE owner = '' AND again = 1 AND organization = ${organization}
     LIMIT ${most}`)
  return rows.length
}

/** Keeps the contents and marks them as read by the current version of the reader. */
export async function keepContents(tx: Tx, repo: number, digest: string): Promise<void> {
  await tx.run(sql`
    UPDATE image_contents SET reader = ${readerVersion} WHERE repo_id = ${repo} AND digest = ${digest}`)
}

/** The next repository, by uid, with an image that an earlier version of the reader has read. */
export async function nextOutdated(reader: Reader, after: string): Promise<{ repo: number; uid: string } | undefined> {
  return reader.get(sql`
    SELECT r.id AS repo, r.uid FROM repos r
     WHERE r.uid > ${after}
       AND EXISTS (SELECT 1 FROM image_contents c WHERE c.repo_id = r.id AND c.reader IN (${list(earlier)}))
     ORDER BY r.uid LIMIT 1`)
}

export async function hasOutdated(reader: Reader): Promise<boolean> {
  return exists(reader, sql`FROM image_contents WHERE reader IN (${list(earlier)})`)
}

/** Deletes all contents of a repository. Deletes package lists that no other repository uses. */
export async function deleteContents(tx: Tx, repo: number): Promise<number> {
  return deleteWhere(tx, sql`repo_id = ${repo}`, sql`o.repo_id <> ${repo}`)
}

/** Deletes contents of some images of a repository, and the package lists that only these images have. */
export async function deleteSomeContents(tx: Tx, repo: number, digests: readonly string[]): Promise<number> {
  const some = sql`repo_id = ${repo} AND digest IN (${list(digests)})`
  return deleteWhere(tx, some, sql`NOT (o.repo_id = ${repo} AND o.digest IN (${list(digests)}))`)
}

async function deleteWhere(tx: Tx, some: Sql, others: Sql): Promise<number> {
  // Locks the package lists. A transaction that gives one of these lists to another image waits now, or it has committed before
  // the next statement.
  await tx.all(sql`
    SELECT hash FROM package_lists
     WHERE hash IN (SELECT packages FROM image_contents WHERE ${some} AND packages <> '')
     ORDER BY hash ${locking(tx, 'deleting')}`)
  await tx.run(sql`
    DELETE FROM package_lists
     WHERE hash IN (SELECT packages FROM image_contents WHERE ${some} AND packages <> '')
       AND NOT EXISTS (SELECT 1 FROM image_contents o
                        WHERE o.packages = package_lists.hash AND o.packages <> '' AND ${others})`)
  return tx.run(sql`DELETE FROM image_contents WHERE ${some}`)
}
