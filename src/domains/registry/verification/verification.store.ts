// Compares stored data that must agree: usage with blobs of repositories, links with manifests, and tags with their history. Each
// query reads the data of one moment, so a push in between makes no difference. A real difference stays until it is corrected.
import { allAtLeisure, type Db, list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { bytesOfSigned, type Usage } from '../blobs/blobs.model.ts'
import type { Manifest } from '../manifests/manifests.model.ts'
import { eventNumbers, sourceNumbers } from '../tags/tag-history.model.ts'

export type CountedLink = { organization: string; digest: string; counted: number; found: number }

/**
 * A page of the blobs of organizations. `counted` and `found` are the counted and the actual number of repositories with the
 * blob.
 */
export function countedLinks(db: Db, after: Pick<CountedLink, 'organization' | 'digest'>, most: number) {
  return allAtLeisure<CountedLink>(
    db,
    sql`
    SELECT o.org_uid AS organization, o.digest, o.links AS counted,
           (SELECT count(*) FROM repo_blobs b JOIN repos r ON r.id = b.repo_id
             WHERE b.digest = o.digest AND substr(replace(r.uid, '!', ''), 1, 40) = o.org_uid) AS found
      FROM organization_blobs o
     WHERE (o.org_uid, o.digest) > (${after.organization}, ${after.digest})
     ORDER BY o.org_uid, o.digest LIMIT ${most}`,
  )
}

export type RepoLink = { repo: number; digest: string; organization: string; isCounted: number }

/** A page of the blobs of repositories. Each row says whether the blob is counted for the organization. */
export function repoLinks(reader: Reader, after: Pick<RepoLink, 'repo' | 'digest'>, most: number) {
  return reader.all<RepoLink>(sql`
    SELECT b.repo_id AS repo, b.digest, substr(replace(r.uid, '!', ''), 1, 40) AS organization,
           CASE WHEN EXISTS (SELECT 1 FROM organization_blobs o
                              WHERE o.org_uid = substr(replace(r.uid, '!', ''), 1, 40) AND o.digest = b.digest)
                THEN 1 ELSE 0 END AS "isCounted"
      FROM repo_blobs b JOIN repos r ON r.id = b.repo_id
     WHERE (b.repo_id, b.digest) > (${after.repo}, ${after.digest})
     ORDER BY b.repo_id, b.digest LIMIT ${most}`)
}

/** Adds the difference to the counted links. Deletes the row if the result is 0. */
export async function correctLinks(tx: Tx, { organization, digest, counted, found }: CountedLink): Promise<void> {
  await tx.run(sql`
    INSERT INTO organization_blobs (org_uid, digest, links) VALUES (${organization}, ${digest}, ${found - counted})
        ON CONFLICT (org_uid, digest) DO UPDATE SET links = organization_blobs.links + excluded.links`)
  await tx.run(
    sql`DELETE FROM organization_blobs WHERE org_uid = ${organization} AND digest = ${digest} AND links <= 0`,
  )
}

export async function organizationsAfter(reader: Reader, after: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ uid: string }>(sql`
    SELECT uid FROM groups WHERE uid > ${after} AND length(uid) = 40 ORDER BY uid LIMIT ${most}`)
  return rows.map(({ uid }) => uid)
}

/** Actual usage of the organization minus the counted usage. */
export async function usageDifference(db: Db, organization: string): Promise<Usage> {
  // Repositories that are being removed still count toward the usage.
  const below = sql`
    (r.uid > ${`${organization}/`} AND r.uid < ${`${organization}0`}
      OR r.uid > ${`!${organization}/`} AND r.uid < ${`!${organization}0`})`
  const counted = (column: ReturnType<typeof sql>) => sql`
    (SELECT coalesce(sum(${column}), 0) FROM organization_usage WHERE org_uid = ${organization})`
  const [row] = await allAtLeisure<Usage>(
    db,
    sql`
    SELECT CAST((SELECT coalesce(sum(b.size), 0) FROM organization_blobs o JOIN blobs b ON b.digest = o.digest
                  WHERE o.org_uid = ${organization})
              + (SELECT coalesce(sum(m.size), 0) FROM manifests m JOIN repos r ON r.id = m.repo_id WHERE ${below})
              + (SELECT coalesce(sum(s.size), 0) FROM scan_reports s WHERE s.organization = ${organization})
              + (SELECT count(*) * ${bytesOfSigned} FROM signed_statements
                  WHERE repo_uid > ${`${organization}/`} AND repo_uid < ${`${organization}0`})
              + (SELECT coalesce(sum(l.charged), 0) FROM component_lists l
                  WHERE l.payer = ${organization} AND l.payer <> '')
              + (SELECT coalesce(sum(f.charged), 0) FROM findings f
                  WHERE f.place = ${organization} AND f.charged > 0)
              - ${counted(sql`bytes`)} AS BIGINT) AS bytes,
           CAST((SELECT count(*) FROM uploads u JOIN repos r ON r.id = u.repo_id WHERE ${below})
              - ${counted(sql`uploads`)} AS BIGINT) AS uploads,
           CAST((SELECT coalesce(sum(u.size), 0) FROM uploads u JOIN repos r ON r.id = u.repo_id WHERE ${below})
              - ${counted(sql`upload_bytes`)} AS BIGINT) AS "uploadBytes"`,
  )
  return row!
}

export type ManifestKey = { id: number; repo: number; digest: string; mediaType: string; size: number }

export function manifestsAfter(reader: Reader, after: number, most: number): Promise<ManifestKey[]> {
  return reader.all(sql`
    SELECT m.id, m.repo_id AS repo, m.digest, m.media_type AS "mediaType", m.size FROM manifests m
     WHERE m.id > ${after} ORDER BY m.id LIMIT ${most}`)
}

export type StoredLink = { digest: string; kind: number }

/** The given manifests that the repository still has. */
export function manifestsOf(reader: Reader, repo: number, digests: readonly string[]): Promise<Manifest[]> {
  return reader.all(sql`
    SELECT digest, media_type AS "mediaType", content FROM manifests
     WHERE repo_id = ${repo} AND digest IN (${list(digests)})`)
}

/** Blobs and manifests that each manifest of a repository needs. */
export function linksOf(
  reader: Reader,
  repo: number,
  digests: readonly string[],
): Promise<(StoredLink & { manifest: string })[]> {
  return reader.all(sql`
    SELECT manifest, digest, kind FROM manifest_links WHERE repo_id = ${repo} AND manifest IN (${list(digests)})`)
}

export async function deleteLinksOf(tx: Tx, { repo, digest }: Pick<ManifestKey, 'repo' | 'digest'>): Promise<number> {
  return tx.run(sql`DELETE FROM manifest_links WHERE repo_id = ${repo} AND manifest = ${digest}`)
}

type LinkKey = { repo: number; digest: string; manifest: string }

/**
 * A page of links of manifests. `isLoose` is 1 for the first link of a deleted manifest, unless its repository is deleted too.
 */
export function linksAfter(reader: Reader, after: LinkKey, most: number) {
  return reader.all<LinkKey & { isLoose: number }>(sql`
    SELECT l.repo_id AS repo, l.digest, l.manifest,
           CASE WHEN EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = l.repo_id AND m.digest = l.manifest)
                  OR NOT EXISTS (SELECT 1 FROM repos r WHERE r.id = l.repo_id AND r.ledger_id IS NOT NULL)
                  OR EXISTS (SELECT 1 FROM manifest_links b
                              WHERE b.repo_id = l.repo_id AND b.manifest = l.manifest AND b.digest < l.digest)
                THEN 0 ELSE 1 END AS "isLoose"
      FROM manifest_links l
     WHERE (l.repo_id, l.digest, l.manifest) > (${after.repo}, ${after.digest}, ${after.manifest})
     ORDER BY l.repo_id, l.digest, l.manifest LIMIT ${most}`)
}

export type TagRecord = {
  id: number
  uid: string
  name: string
  digest: string
  assignTime: string
  repo: number
  repoUid: string
  ledger: number
  /** Time of the last row in the tag history. Empty if the tag has no row. */
  lastTime: string
  lastEvent: number
  lastDigest: string
}

function tagRecords(where: Sql, most: number): Sql {
  return sql`
    SELECT t.id, t.uid, t.name, t.digest, t.assign_time AS "assignTime", r.id AS repo, r.uid AS "repoUid",
           r.ledger_id AS ledger, coalesce(h.time, '') AS "lastTime", coalesce(h.event, 0) AS "lastEvent",
           coalesce(h.digest, '') AS "lastDigest"
      FROM tags t JOIN repos r ON r.id = t.repo_id AND r.ledger_id IS NOT NULL
      LEFT JOIN tag_history h ON h.repo_id = r.ledger_id AND h.tag = t.name AND h.time = (
        SELECT max(l.time) FROM tag_history l WHERE l.repo_id = r.ledger_id AND l.tag = t.name)
     WHERE ${where}
     ORDER BY t.id LIMIT ${most}`
}

export function tagRecordsAfter(reader: Reader, after: number, most: number): Promise<TagRecord[]> {
  return reader.all(tagRecords(sql`t.id > ${after}`, most))
}

export function tagRecordOf(reader: Reader, id: number): Promise<TagRecord | undefined> {
  return reader.get(tagRecords(sql`t.id = ${id}`, 1))
}

export type LedgerRow = {
  ledger: number
  tag: string
  time: string
  event: number
  digest: string
  previousDigest: string
}
export type LedgerKey = Pick<LedgerRow, 'ledger' | 'tag' | 'time'>

export function ledgerRowsAfter(reader: Reader, { ledger, tag, time }: LedgerKey, most: number): Promise<LedgerRow[]> {
  return reader.all(sql`
    SELECT repo_id AS ledger, tag, time, event, digest, previous_digest AS "previousDigest" FROM tag_history
     WHERE (repo_id, tag, time) > (${ledger}, ${tag}, ${time})
     ORDER BY repo_id, tag, time LIMIT ${most}`)
}

export type MissingTag = LedgerKey & {
  digest: string
  repo: number
  repoUid: string
  /**
   * 1 if the manifest exists, or if the tag is valid without it: content of imported, copied and mirrored tags may be elsewhere.
   */
  canStand: number
}

/**
 * Missing tags of existing repositories whose last row is not a deletion. Examines at most `most` rows, between two rows of the
 * tag history. The limit makes PostgreSQL read these rows first, instead of the whole tag history of all repositories.
 */
export function missingTags(reader: Reader, from: LedgerKey, to: LedgerKey, most: number): Promise<MissingTag[]> {
  return reader.all(sql`
    SELECT h.repo_id AS ledger, h.tag, h.time, h.digest, r.id AS repo, r.uid AS "repoUid",
           CASE WHEN EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = r.id AND m.digest = h.digest)
                  OR h.source NOT IN (${sourceNumbers.oci}, ${sourceNumbers.api})
                  OR EXISTS (SELECT 1 FROM follows f WHERE f.repo_uid = r.uid)
                THEN 1 ELSE 0 END AS "canStand"
      FROM (SELECT repo_id, tag, time, event, digest, source FROM tag_history
             WHERE (repo_id, tag, time) > (${from.ledger}, ${from.tag}, ${from.time})
               AND (repo_id, tag, time) <= (${to.ledger}, ${to.tag}, ${to.time})
             ORDER BY repo_id DESC, tag DESC, time DESC LIMIT ${most}) AS h
      JOIN repos r ON r.ledger_id = h.repo_id
     WHERE h.event <> ${eventNumbers.deleted}
       AND NOT EXISTS (SELECT 1 FROM tag_history l WHERE l.repo_id = h.repo_id AND l.tag = h.tag AND l.time > h.time)
       AND NOT EXISTS (SELECT 1 FROM tags t WHERE t.repo_id = r.id AND t.name = h.tag)
     ORDER BY h.repo_id, h.tag`)
}
