// Stored retention dates, and queries on tag history and manifests for finding what is protected.
import { join, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { eventNumbers } from '#domains/registry/tags/tag-history.model.ts'
import type { Dated, TagAssignment } from './retention.model.ts'

/**
 * Protects a manifest until this date. Does nothing if the manifest has a later date, or if the repository does not have the
 * manifest.
 */
export async function extendLock(tx: Tx, repo: number, digest: string, promise: Dated): Promise<void> {
  await tx.run(sql`
    INSERT INTO digest_promises (repo_id, digest, until_time, rule)
    SELECT repo_id, digest, ${promise.until}, ${promise.rule} FROM manifests WHERE repo_id = ${repo} AND digest = ${digest}
        ON CONFLICT (repo_id, digest) DO UPDATE SET until_time = excluded.until_time, rule = excluded.rule
     WHERE digest_promises.until_time < excluded.until_time`)
}

export async function findLock(reader: Reader, repo: number, digest: string): Promise<Dated | undefined> {
  return reader.get<Dated>(sql`
    SELECT until_time AS until, rule FROM digest_promises WHERE repo_id = ${repo} AND digest = ${digest}`)
}

/** The latest future retention date in a repository. */
export async function findLatestLock(reader: Reader, repo: number, now: string): Promise<Dated | undefined> {
  return reader.get<Dated>(sql`
    SELECT until_time AS until, rule FROM digest_promises
     WHERE repo_id = ${repo} AND until_time > ${now} ORDER BY until_time DESC LIMIT 1`)
}

/**
 * Manifest that only a retention date can protect. It has no tag and no subject, and no index lists it. Otherwise returns
 * undefined.
 */
export async function unreferencedManifest(reader: Reader, repo: { id: number; uid: string }, digest: string) {
  return reader.get<{ createTime: string }>(sql`
    SELECT m.create_time AS "createTime" FROM manifests m
     WHERE m.repo_id = ${repo.id} AND m.digest = ${digest} AND m.subject = ''
       AND NOT EXISTS (SELECT 1 FROM tags t
                        WHERE t.digest = m.digest AND t.uid > ${`${repo.uid}/`} AND t.uid < ${`${repo.uid}0`})
       AND NOT EXISTS (SELECT 1 FROM manifest_links l
                        WHERE l.repo_id = m.repo_id AND l.digest = m.digest AND l.kind = 1)`)
}

const neverTagged = ({ ledger }: { ledger: number }): Sql => sql`
  NOT EXISTS (SELECT 1 FROM tag_history h
               WHERE h.repo_id = ${ledger} AND h.digest = m.digest AND h.event <> ${eventNumbers.deleted})`

/**
 * Creation time of a manifest that never had a tag. Returns undefined if the manifest had a tag, or if the repository does not
 * have the manifest.
 */
export async function untaggedSince(reader: Reader, repo: { id: number; ledger: number }, digest: string) {
  const row = await reader.get<{ createTime: string }>(sql`
    SELECT m.create_time AS "createTime" FROM manifests m
     WHERE m.repo_id = ${repo.id} AND m.digest = ${digest} AND ${neverTagged(repo)}`)
  return row?.createTime
}

export type PushPeriod = { after: string; until: string }

/**
 * Up to `most` manifests after the digest `behind`. `isUntagged` is true if the manifest was pushed within one of the time ranges
 * and never had a tag.
 */
export async function listUntagged(
  reader: Reader,
  repo: { id: number; ledger: number },
  came: readonly PushPeriod[],
  { behind, most }: { behind: string; most: number },
): Promise<{ digest: string; isUntagged: boolean }[]> {
  const within = came.map(({ after, until }) => sql`m.create_time > ${after} AND m.create_time <= ${until}`)
  const rows = await reader.all<{ digest: string; untagged: number }>(sql`
    SELECT m.digest,
           CASE WHEN (${join(within, ' OR ')}) AND ${neverTagged(repo)}
                THEN 1 ELSE 0 END AS untagged
      FROM manifests m WHERE m.repo_id = ${repo.id} AND m.digest > ${behind} ORDER BY m.digest LIMIT ${most}`)
  return rows.map(({ digest, untagged }) => ({ digest, isUntagged: untagged === 1 }))
}

/** Periods in which tags pointed to a digest, at most `most`. */
export async function assignmentsOfDigest(
  reader: Reader,
  ledger: number,
  digest: string,
  most: number,
): Promise<TagAssignment[]> {
  return reader.all<TagAssignment>(sql`
    SELECT h.tag, h.time AS came, coalesce((SELECT n.time FROM tag_history n
                             WHERE n.repo_id = h.repo_id AND n.tag = h.tag AND n.time > h.time
                             ORDER BY n.time LIMIT 1), '') AS "left"
      FROM tag_history h
     WHERE h.repo_id = ${ledger} AND h.digest = ${digest} AND h.event <> ${eventNumbers.deleted}
     ORDER BY h.tag, h.time LIMIT ${most}`)
}

export type LedgerMove = { tag: string; time: string; digest: string; previous: string }

/** Rows of the tag history before the given row, the newest first. */
export async function movesBefore(
  reader: Reader,
  ledger: number,
  before: { time: string; tag: string },
  most: number,
): Promise<LedgerMove[]> {
  return reader.all<LedgerMove>(sql`
    SELECT tag, time, CASE WHEN event = ${eventNumbers.deleted} THEN '' ELSE digest END AS digest,
           previous_digest AS previous
      FROM tag_history
     WHERE (-repo_id) = ${-ledger} AND (time, tag) < (${before.time}, ${before.tag})
     ORDER BY time DESC, tag DESC LIMIT ${most}`)
}

export type ManifestFacts = { subject: string; createTime: string; size: number }

export async function factsOf(reader: Reader, repo: number, digest: string): Promise<ManifestFacts | undefined> {
  return reader.get<ManifestFacts>(sql`
    SELECT subject, create_time AS "createTime", size FROM manifests WHERE repo_id = ${repo} AND digest = ${digest}`)
}

/** Indexes of the repository that list the manifest, at most `most`. */
export async function indexesOf(reader: Reader, repo: number, digest: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ manifest: string }>(sql`
    SELECT manifest FROM manifest_links
     WHERE repo_id = ${repo} AND digest = ${digest} AND kind = 1 ORDER BY manifest LIMIT ${most}`)
  return rows.map(({ manifest }) => manifest)
}

/** Digests to which a tag points or has pointed, the newest first. `here` is 1 if the repository still has the digest. */
export async function digestsUnder(
  reader: Reader,
  repo: { id: number; ledger: number },
  tag: string,
  most: number,
): Promise<{ digest: string; here: number }[]> {
  return reader.all(sql`
    SELECT h.digest, CASE WHEN EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = ${repo.id} AND m.digest = h.digest)
                          THEN 1 ELSE 0 END AS here
      FROM tag_history h WHERE h.repo_id = ${repo.ledger} AND h.tag = ${tag} ORDER BY h.time DESC LIMIT ${most}`)
}

/** Blobs in the repository that a manifest needs or an index lists. */
export async function blobsOf(
  reader: Reader,
  repo: number,
  manifest: string,
): Promise<{ digest: string; size: number }[]> {
  return reader.all(sql`
    SELECT l.digest, b.size FROM manifest_links l
      JOIN repo_blobs r ON r.repo_id = l.repo_id AND r.digest = l.digest
      JOIN blobs b ON b.digest = l.digest
     WHERE l.repo_id = ${repo} AND l.manifest = ${manifest} ORDER BY l.digest`)
}

/** Names of present and deleted tags in the tag history, in order. With `digest`, only tags that the digest has or had. */
export async function tagsOf(reader: Reader, ledger: number, most: number, digest?: string): Promise<string[]> {
  const ofDigest = digest === undefined ? sql`` : sql`AND digest = ${digest}`
  const next = (after: Sql): Sql =>
    sql`(SELECT tag FROM tag_history WHERE repo_id = ${ledger} ${ofDigest} AND tag > ${after} ORDER BY tag LIMIT 1)`
  const rows = await reader.all<{ tag: string }>(sql`
    WITH RECURSIVE names (tag, n) AS (
      SELECT ${next(sql`''`)}, 1
       UNION ALL
      SELECT ${next(sql`names.tag`)}, names.n + 1 FROM names WHERE names.tag IS NOT NULL AND names.n < ${most}
    )
    SELECT tag FROM names WHERE tag IS NOT NULL`)
  return rows.map(({ tag }) => tag)
}

/** Assignments of a tag, the newest first. */
export async function assignmentsOfTag(reader: Reader, ledger: number, tag: string, most: number) {
  return reader.all<{ time: string; digest: string }>(sql`
    SELECT time, digest FROM tag_history
     WHERE repo_id = ${ledger} AND tag = ${tag} AND event <> ${eventNumbers.deleted} ORDER BY time DESC LIMIT ${most}`)
}
