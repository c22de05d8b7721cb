// What is counted for organisations, against what their repos have. Each answer is of one moment, so that a difference is
// never one that a push makes meanwhile; it stays the same until it is corrected.
import { allAtLeisure, type Db, type Reader, sql, type Tx } from '#db/sql.ts'
import { bytesOfSigned, type Usage } from '../blobs/usage.model.ts'

export type CountedLink = { organization: string; digest: string; counted: number; found: number }

/** A page of the blobs that organisations have, with how many of their repos are said to have them, and do. */
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

/** A page of the blobs of repos, with whether they are counted for the organisation at all. */
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

/** Adds the difference, and forgets what nothing has any more. */
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

/** What the organisation uses, less what is counted for it. */
export async function usageDifference(db: Db, organization: string): Promise<Usage> {
  // What is being removed counts until it is gone.
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
