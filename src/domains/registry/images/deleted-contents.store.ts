import { join, list, type Reader, sql, type Tx } from '#db/sql.ts'
import { organization } from './image-contents.store.ts'

/** Row with the contents of a deleted image, or with former contents of an image. */
export type StoredContentsRow = { repo: number; digest: string; time: string; organization: string }

/** Images after the cursor whose contents are stored, in order. `gone` is true for deleted images. */
export async function contentsAfter(
  reader: Reader,
  { repo, digest }: Pick<StoredContentsRow, 'repo' | 'digest'>,
  most: number,
): Promise<(StoredContentsRow & { isGone: boolean })[]> {
  const rows = await reader.all<StoredContentsRow & { gone: number }>(sql`
    SELECT c.repo_id AS repo, c.digest, c.read_time AS time, ${organization} AS organization,
           CASE WHEN EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = c.repo_id AND m.digest = c.digest)
                THEN 0 ELSE 1 END AS gone
      FROM image_contents c JOIN repos r ON r.id = c.repo_id
     WHERE (c.repo_id, c.digest) > (${repo}, ${digest}) ORDER BY c.repo_id, c.digest LIMIT ${most}`)
  return rows.map(({ gone, ...row }) => ({ ...row, repo: Number(row.repo), isGone: Number(gone) === 1 }))
}

/** Former contents of images after the cursor, in order. */
export async function pastAfter(
  reader: Reader,
  { repo, digest, time }: Omit<StoredContentsRow, 'organization'>,
  most: number,
) {
  const rows = await reader.all<StoredContentsRow>(sql`
    SELECT c.repo_id AS repo, c.digest, c.until_time AS time, ${organization} AS organization
      FROM past_contents c JOIN repos r ON r.id = c.repo_id
     WHERE (c.repo_id, c.digest, c.until_time) > (${repo}, ${digest}, ${time})
     ORDER BY c.repo_id, c.digest, c.until_time LIMIT ${most}`)
  return rows.map((row) => ({ ...row, repo: Number(row.repo) }))
}

/** The given digests of manifests that the repository does not have. */
export async function missingDigests(reader: Reader, repo: number, digests: readonly string[]): Promise<string[]> {
  const rows = await reader.all<{ digest: string }>(sql`
    SELECT m.digest FROM manifests m WHERE m.repo_id = ${repo} AND m.digest IN (${list(digests)})`)
  const there = new Set(rows.map(({ digest }) => digest))
  return digests.filter((one) => !there.has(one))
}

/** Deletes former contents of images of a repository, by digest and end time. */
export async function deletePast(tx: Tx, repo: number, some: readonly Pick<StoredContentsRow, 'digest' | 'time'>[]) {
  const pairs = join(
    some.map(({ digest, time }) => sql`(${digest}, ${time})`),
    ', ',
  )
  await tx.run(sql`DELETE FROM past_contents WHERE repo_id = ${repo} AND (digest, until_time) IN (VALUES ${pairs})`)
}

export async function deleteAllPast(tx: Tx, repo: number, digests: readonly string[]): Promise<void> {
  await tx.run(sql`DELETE FROM past_contents WHERE repo_id = ${repo} AND digest IN (${list(digests)})`)
}
