// Storage that organizations use in the registry. Each transaction that changes links, manifests or uploads records the change
// here.
import { exists } from '#db/bulk.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { Usage } from './blobs.model.ts'

/** Original uid of a repository, also while it is being removed. */
export const uidOfRepo = sql`replace(uid, '!', '')`

export async function usageOf(reader: Reader, organization: string): Promise<Usage> {
  const row = await reader.get<Usage>(sql`
    SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes, CAST(coalesce(sum(uploads), 0) AS BIGINT) AS uploads,
           CAST(coalesce(sum(upload_bytes), 0) AS BIGINT) AS "uploadBytes"
      FROM organization_usage WHERE org_uid = ${organization}`)
  return row!
}

/** True if the organization exists and its usage was ever counted. */
export async function hasUsage(reader: Reader, organization: string): Promise<boolean> {
  return exists(reader, sql`FROM organization_usage WHERE org_uid = ${organization}`)
}

/** Adds to the usage row of this database connection, so that pushes to one organization do not wait for each other. */
export async function addUsage(tx: Tx, organization: string, added: Partial<Usage>): Promise<void> {
  await addTo(tx, organization, tx.shard, added)
}

/**
 * Adds an upload to the one row that all connections share, and keeps the row locked. So the request that starts the next upload
 * waits until it can count this upload.
 */
export async function addUpload(tx: Tx, organization: string): Promise<void> {
  await addTo(tx, organization, -1, { uploads: 1 })
}

/** Locks the usage of an organization. Other transactions that call this wait until the transaction ends. */
export async function lockUsage(tx: Tx, organization: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO organization_usage (org_uid, shard, bytes, uploads, upload_bytes) VALUES (${organization}, -1, 0, 0, 0)
        ON CONFLICT (org_uid, shard) DO UPDATE SET uploads = organization_usage.uploads`)
}

async function addTo(
  tx: Tx,
  organization: string,
  shard: number,
  { bytes = 0, uploads = 0, uploadBytes = 0 }: Partial<Usage>,
): Promise<void> {
  if (bytes === 0 && uploads === 0 && uploadBytes === 0) return
  await tx.run(sql`
    INSERT INTO organization_usage (org_uid, shard, bytes, uploads, upload_bytes)
    VALUES (${organization}, ${shard}, ${bytes}, ${uploads}, ${uploadBytes})
        ON CONFLICT (org_uid, shard) DO UPDATE
           SET bytes = organization_usage.bytes + excluded.bytes,
               uploads = organization_usage.uploads + excluded.uploads,
               upload_bytes = organization_usage.upload_bytes + excluded.upload_bytes`)
}

/** Counts a link to the blob in the organization. Returns the bytes added: 0 if another of its repositories has the blob. */
export async function addLink(tx: Tx, organization: string, digest: string): Promise<number> {
  const row = await tx.get<{ links: number; size: number }>(sql`
    INSERT INTO organization_blobs (org_uid, digest, links) VALUES (${organization}, ${digest}, 1)
        ON CONFLICT (org_uid, digest) DO UPDATE SET links = organization_blobs.links + 1
    RETURNING links, (SELECT size FROM blobs WHERE digest = ${digest}) AS size`)
  const added = row!.links === 1 ? row!.size : 0
  await addUsage(tx, organization, { bytes: added })
  return added
}

/** Subtracts a link to the blob. */
export async function removeLink(tx: Tx, organization: string, digest: string): Promise<void> {
  await tx.run(sql`
    UPDATE organization_blobs SET links = links - 1 WHERE org_uid = ${organization} AND digest = ${digest}`)
  await forgetUnlinked(tx, organization, sql`${digest}`)
}

/** Subtracts all links of a repository that is being deleted. */
export async function removeLinksOf(tx: Tx, organization: string, repo: number): Promise<void> {
  const digests = sql`SELECT digest FROM repo_blobs WHERE repo_id = ${repo}`
  await tx.run(sql`
    UPDATE organization_blobs SET links = links - 1 WHERE org_uid = ${organization} AND digest IN (${digests})`)
  await forgetUnlinked(tx, organization, digests)
}

async function forgetUnlinked(tx: Tx, organization: string, digests: ReturnType<typeof sql>): Promise<void> {
  const unlinked = sql`org_uid = ${organization} AND digest IN (${digests}) AND links = 0`
  const row = await tx.get<{ bytes: number }>(sql`
    SELECT CAST(coalesce(sum(size), 0) AS BIGINT) AS bytes FROM blobs
     WHERE digest IN (SELECT digest FROM organization_blobs WHERE ${unlinked})`)
  await tx.run(sql`DELETE FROM organization_blobs WHERE ${unlinked}`)
  await addUsage(tx, organization, { bytes: -row!.bytes })
}

/** Deletes the usage of a deleted organization. */
export async function deleteUsage(tx: Tx, organization: string): Promise<void> {
  await tx.run(sql`DELETE FROM organization_usage WHERE org_uid = ${organization}`)
}
