// Finds images by their package list. Several images can have the same list.
import { list, type Reader, sql } from '#db/sql.ts'
import { top } from '#lib/uid.ts'
import { contentsStates } from './image-contents.model.ts'

/** Package list of a distribution, by its hash. */
export type ListName = { hash: string; distribution: { id: string; version: string } }

export type ListedImage = { repo: number; repoUid: string; digest: string }

/** Cursor of a page: the last image of the page before. */
export type ImageCursor = { repo: number; digest: string }

/** Existing images with this package list after the cursor, in order. */
export async function imagesOfList(
  reader: Reader,
  { hash, distribution }: ListName,
  after: ImageCursor,
  most: number,
): Promise<ListedImage[]> {
  const rows = await reader.all<ListedImage>(sql`
    SELECT c.repo_id AS repo, r.uid AS "repoUid", c.digest FROM image_contents c JOIN repos r ON r.id = c.repo_id
     WHERE c.packages = ${hash} AND c.packages <> '' AND (c.repo_id, c.digest) > (${after.repo}, ${after.digest})
       AND c.distribution = ${distribution.id} AND c.distribution_version = ${distribution.version}
       AND EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = c.repo_id AND m.digest = c.digest)
     ORDER BY c.packages, c.repo_id, c.digest LIMIT ${most}`)
  return rows.map((row) => ({ ...row, repo: Number(row.repo) }))
}

/** An image and its package list. */
export type ImageWithList = ListedImage & { list: ListName }

type WithListRow = ListedImage & { hash: string; id: string; version: string }

const withListColumns = sql`
  c.repo_id AS repo, r.uid AS "repoUid", c.digest, c.packages AS hash, c.distribution AS id, c.distribution_version AS version`

const toImageWithList = ({ repo, repoUid, digest, hash, id, version }: WithListRow): ImageWithList => ({
  ...{ repo: Number(repo), repoUid, digest },
  list: { hash, distribution: { id, version } },
})

/** Existing images of the repository with a package list, by digest, after the cursor. An empty digest is the start. */
export async function imagesOfRepo(
  reader: Reader,
  after: ImageCursor,
  desc: boolean,
  most: number,
): Promise<ImageWithList[]> {
  const isStart = after.digest === ''
  const past = isStart ? sql`1 = 1` : desc ? sql`c.digest < ${after.digest}` : sql`c.digest > ${after.digest}`
  const rows = await reader.all<WithListRow>(sql`
    SELECT ${withListColumns} FROM image_contents c JOIN repos r ON r.id = c.repo_id
     WHERE c.repo_id = ${after.repo} AND ${past} AND c.packages <> ''
       AND EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = c.repo_id AND m.digest = c.digest)
     ORDER BY c.digest ${desc ? sql`DESC` : sql`ASC`} LIMIT ${most}`)
  return rows.map(toImageWithList)
}

/**
 * The next repository of a scope, by uid, that has an image with a package list. Without `after`, begins with the first
 * repository.
 */
export async function nextRepoWithImages(
  reader: Reader,
  place: string,
  { after, desc }: { after: string | undefined; desc: boolean },
): Promise<{ repo: number; repoUid: string } | undefined> {
  const within = place === top ? sql`1 = 1` : sql`r.uid >= ${place} AND r.uid < ${endOf(place)}`
  const past = after === undefined ? sql`1 = 1` : desc ? sql`r.uid < ${after}` : sql`r.uid > ${after}`
  const row = await reader.get<{ repo: number; repoUid: string }>(sql`
    SELECT r.id AS repo, r.uid AS "repoUid" FROM repos r
     WHERE ${within} AND ${past}
       AND EXISTS (SELECT 1 FROM image_contents c WHERE c.repo_id = r.id AND length(c.packages) > 0)
     ORDER BY r.uid ${desc ? sql`DESC` : sql`ASC`} LIMIT 1`)
  return row && { ...row, repo: Number(row.repo) }
}

/** The given hashes that are the hash of the package list of an image. */
export async function hashesInUse(reader: Reader, hashes: readonly string[]): Promise<Set<string>> {
  const rows = await reader.all<{ hash: string }>(sql`
    SELECT DISTINCT c.packages AS hash FROM image_contents c WHERE c.packages IN (${list(hashes)}) AND c.packages <> ''`)
  return new Set(rows.map(({ hash }) => hash))
}

/** End of the range of uids of a resource and everything below it. "0" is the character after the slash. */
const endOf = (scope: string): string => `${scope}0`

/** Package lists of at most `most` images in a scope. A list may occur several times. */
export async function listsBelow(reader: Reader, scope: string, most: number): Promise<ListName[]> {
  const rows = await reader.all<{ hash: string; id: string; version: string }>(sql`
    SELECT c.packages AS hash, c.distribution AS id, c.distribution_version AS version
      FROM repos r JOIN image_contents c ON c.repo_id = r.id
     WHERE r.uid >= ${scope} AND r.uid < ${endOf(scope)} AND c.packages <> '' LIMIT ${most}`)
  return rows.map(({ hash, id, version }) => ({ hash, distribution: { id, version } }))
}

/** Some images in a scope whose contents are unknown or known in part, that have no packages, or that are still queued. */
export async function unknownBelow(reader: Reader, scope: string, most: number): Promise<ListedImage[]> {
  const within = scope === top ? sql`1 = 1` : sql`r.uid >= ${scope} AND r.uid < ${endOf(scope)}`
  const rows = await reader.all<ListedImage>(sql`
    SELECT * FROM (
      SELECT c.repo_id AS repo, r.uid AS "repoUid", c.digest FROM repos r JOIN image_contents c ON c.repo_id = r.id
       WHERE ${within} AND c.state <> 1
         AND EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = c.repo_id AND m.digest = c.digest) LIMIT ${most}) AS matches
    UNION
    SELECT * FROM (
      SELECT c.repo_id AS repo, r.uid AS "repoUid", c.digest FROM repos r JOIN image_contents c ON c.repo_id = r.id
       WHERE ${within} AND c.state = 1 AND c.packages = ''
         AND EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = c.repo_id AND m.digest = c.digest) LIMIT ${most}) AS matches
    UNION
    SELECT * FROM (
      SELECT c.repo_id AS repo, r.uid AS "repoUid", c.digest FROM repos r JOIN image_contents c ON c.repo_id = r.id
       WHERE ${within} AND c.gaps <> '[]'
         AND EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = c.repo_id AND m.digest = c.digest) LIMIT ${most}) AS matches
    UNION
    SELECT * FROM (
      SELECT q.repo_id AS repo, r.uid AS "repoUid", q.digest FROM repos r JOIN image_reads q ON q.repo_id = r.id
       WHERE ${within}
         AND NOT EXISTS (SELECT 1 FROM image_contents k WHERE k.repo_id = q.repo_id AND k.digest = q.digest
                            AND k.state = ${contentsStates.known}) LIMIT ${most}) AS matches`)
  return rows.map((row) => ({ ...row, repo: Number(row.repo) }))
}

/** Repositories with an image that has one of the package lists. */
export async function reposOfLists(
  reader: Reader,
  hashes: readonly string[],
): Promise<{ repo: number; repoUid: string; name: string }[]> {
  const rows = await reader.all<{ repo: number; repoUid: string; name: string }>(sql`
    SELECT r.id AS repo, r.uid AS "repoUid", r.name FROM repos r
     WHERE r.id IN (SELECT c.repo_id FROM image_contents c WHERE c.packages IN (${list(hashes)}) AND c.packages <> '')`)
  return rows.map((row) => ({ ...row, repo: Number(row.repo) }))
}

/** A tag, and the package list of its image. */
export type TaggedImage = { tag: string; digest: string; list: ListName }

const mostTags = 20_000

/** Tags of a repository that point to images with known contents, by name. At most `mostTags`. */
export async function liveTags(reader: Reader, repo: number): Promise<TaggedImage[]> {
  const rows = await reader.all<{ tag: string; digest: string; hash: string; id: string; version: string }>(sql`
    SELECT t.name AS tag, t.digest, c.packages AS hash, c.distribution AS id, c.distribution_version AS version
      FROM tags t JOIN image_contents c ON c.repo_id = t.repo_id AND c.digest = t.digest
     WHERE t.repo_id = ${repo} AND t.digest <> '' AND c.packages <> '' ORDER BY t.repo_id, t.name LIMIT ${mostTags}`)
  return rows.map(({ tag, digest, hash, id, version }) => {
    return { tag, digest, list: { hash, distribution: { id, version } } }
  })
}
