import { insertsOf } from '#db/bulk.ts'
import { readFact, writeFact } from '#db/facts.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { holds } from '#db/trigrams.ts'
import { bucketsPerSegment, type NameFilter, type Part, type Segment } from './tag-parts.model.ts'
import { type Tag, visibleShapes } from './tags.model.ts'
import { fromRow, type Row, tagColumns } from './tags.store.ts'

/** Name index with `segments` segments. It has the tags up to the number `upTo`. */
export type PartIndex = { id: number; upTo: number; segments: number }

const columns = sql`id, up_to AS "upTo", segments`

/** The index for searches. If there are two indexes, the newer one is still being built. */
export async function indexOf(reader: Reader, repo: number): Promise<PartIndex | undefined> {
  return reader.get<PartIndex>(sql`
    SELECT ${columns} FROM tag_part_indexes WHERE repo_id = ${repo} ORDER BY id LIMIT 1`)
}

/** Tags `t` of a repository with a number above `upTo`, ordered by number. */
function beyond(repo: number, upTo: number, wanted: Sql, limit: number): Sql {
  return sql`
    SELECT ${wanted} FROM tags t WHERE -t.repo_id = ${-repo} AND -t.id < ${-upTo} ORDER BY -t.id DESC LIMIT ${limit}`
}

export async function countBeyond(reader: Reader, repo: number, upTo: number, most: number): Promise<number> {
  const counted = await reader.get<{ total: number }>(sql`
    SELECT CAST(count(*) AS BIGINT) AS total FROM (${beyond(repo, upTo, sql`t.id`, most)}) AS found`)
  return Number(counted?.total ?? 0)
}

export type NumberedName = { id: number; uid: string; name: string }

export function namesBeyond(reader: Reader, repo: number, upTo: number, limit: number): Promise<NumberedName[]> {
  return reader.all(beyond(repo, upTo, sql`t.id, t.uid, t.name`, limit))
}

/** Matching tags after `last`, by name, among the first `most` tags that are not indexed. */
export async function newTagsWith(
  reader: Reader,
  repo: number,
  upTo: number,
  { prefix, part, asked }: NameFilter,
  { last, limit, most }: { last: string; limit: number; most: number },
): Promise<Tag[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${tagColumns} FROM (${beyond(repo, upTo, sql`t.*`, most)}) AS t
     WHERE ${within(prefix, last)} AND ${hasPart(part)} AND t.shape IN (${list(visibleShapes(asked))})
     ORDER BY t.name LIMIT ${limit}`)
  return rows.map(fromRow)
}

/** Existing tags of these names that are not hidden, by name. */
export async function visibleTagsNamed(
  reader: Reader,
  repo: number,
  names: readonly string[],
  asked: number,
): Promise<Tag[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${tagColumns} FROM tags t
     WHERE t.repo_id = ${repo} AND t.name IN (${list(names)}) AND +t.shape IN (${list(visibleShapes(asked))})`)
  return rows.map(fromRow).sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The given sequences that occur in a name, the rarest first. */
export async function byRarity(reader: Reader, index: number, grams: readonly string[]): Promise<string[]> {
  const rows = await reader.all<{ gram: string }>(sql`
    SELECT gram FROM tag_parts WHERE index_id = ${index} AND gram IN (${list(grams)})
     GROUP BY gram ORDER BY sum(length(held)), gram`)
  return rows.map(({ gram }) => gram)
}

/** Positions of the names that contain the sequences, for each segment. */
export function partsOf(
  reader: Reader,
  { id, segments }: PartIndex,
  grams: readonly string[],
): Promise<(Part & { segment: number })[]> {
  return reader.all(sql`
    SELECT segment, gram, held FROM tag_parts
     WHERE index_id = ${id} AND gram IN (${list(grams)}) AND segment < ${segments}`)
}

export function fencesOf(
  reader: Reader,
  index: number,
  segments: readonly number[],
): Promise<{ segment: number; fences: string }[]> {
  return reader.all(sql`
    SELECT segment, fences FROM tag_part_segments WHERE index_id = ${index} AND segment IN (${list(segments)})`)
}

export async function namesIn(reader: Reader, index: number, buckets: readonly number[]): Promise<string[]> {
  const rows = await reader.all<{ names: string }>(sql`
    SELECT names FROM tag_part_names WHERE index_id = ${index} AND bucket IN (${list(buckets)})`)
  return rows.map(({ names }) => names)
}

/** Repositories of the next tags by number. `last` is the highest of these numbers for each repository. */
export function reposBeyond(reader: Reader, number: number, most: number): Promise<{ repo: number; last: number }[]> {
  return reader.all(sql`
    SELECT repo_id AS repo, max(id) AS last
      FROM (SELECT repo_id, id FROM tags WHERE id > ${number} ORDER BY id LIMIT ${most}) AS next GROUP BY repo_id`)
}

export async function lastNumber(reader: Reader): Promise<number> {
  return (await reader.get<{ last: number | null }>(sql`SELECT max(id) AS last FROM tags`))?.last ?? 0
}

/** Number of the last tag that was examined. */
export async function lastIndexedNumber(reader: Reader): Promise<number> {
  return Number((await readFact(reader, 'tags_seen')) ?? 0)
}

export function setLastIndexedNumber(tx: Tx, number: number): Promise<void> {
  return writeFact(tx, 'tags_seen', String(number))
}

export type DueIndex = PartIndex & { repo: number; uid: string }

/** Indexes that need a segment, the oldest first. Repositories that are being removed are left out. */
export function dueIndexes(reader: Reader): Promise<DueIndex[]> {
  return reader.all(sql`
    SELECT i.id, i.up_to AS "upTo", i.segments, i.repo_id AS repo, r.uid
      FROM tag_part_indexes i JOIN repos r ON r.id = i.repo_id AND r.ledger_id IS NOT NULL
     WHERE i.due = 1 ORDER BY i.id`)
}

/** The index to which new tags are added. */
export async function newestIndexOf(reader: Reader, repo: number): Promise<PartIndex | undefined> {
  return reader.get<PartIndex>(sql`
    SELECT ${columns} FROM tag_part_indexes WHERE repo_id = ${repo} ORDER BY id DESC LIMIT 1`)
}

export async function insertIndex(tx: Tx, repo: number): Promise<void> {
  await tx.run(sql`INSERT INTO tag_part_indexes (repo_id, up_to, segments, due) VALUES (${repo}, 0, 0, 1)`)
}

export async function setDue(tx: Tx, index: number, due: boolean): Promise<void> {
  await tx.run(sql`UPDATE tag_part_indexes SET due = ${Number(due)} WHERE id = ${index}`)
}

/**
 * Adds the entries of a segment. Entries of an interrupted run do no harm: searches check each name and skip names that do not
 * match.
 */
export async function insertParts(tx: Tx, { id, segments }: PartIndex, parts: readonly Part[]): Promise<void> {
  const rows = parts.map(({ gram, held }) => sql`(${id}, ${gram}, ${segments}, ${held})`)
  const into = sql`INSERT INTO tag_parts (index_id, gram, segment, held)`
  const again = sql`ON CONFLICT (index_id, gram, segment) DO UPDATE SET held = excluded.held`
  for (const insert of insertsOf(into, rows, again)) await tx.run(insert)
}

export async function insertNames(tx: Tx, { id, segments }: PartIndex, { buckets, fences }: Segment): Promise<void> {
  const rows = buckets.map((names, i) => sql`(${id}, ${segments * bucketsPerSegment + i}, ${names})`)
  const into = sql`INSERT INTO tag_part_names (index_id, bucket, names)`
  const again = sql`ON CONFLICT (index_id, bucket) DO UPDATE SET names = excluded.names`
  for (const insert of insertsOf(into, rows, again)) await tx.run(insert)
  await tx.run(sql`
    INSERT INTO tag_part_segments (index_id, segment, fences) VALUES (${id}, ${segments}, ${fences})
        ON CONFLICT (index_id, segment) DO UPDATE SET fences = excluded.fences`)
}

/** Makes the segment visible to searches. Does nothing if the index has changed meanwhile, or if its last tag was replaced. */
export async function endSegment(tx: Tx, { id, upTo, segments }: PartIndex, last: NumberedName): Promise<number> {
  return tx.run(sql`
    UPDATE tag_part_indexes SET up_to = ${last.id}, segments = ${segments + 1}
     WHERE id = ${id} AND segments = ${segments} AND up_to = ${upTo}
       AND EXISTS (SELECT 1 FROM tags WHERE id = ${last.id} AND uid = ${last.uid})`)
}

/** Detaches the older indexes of the repository, so that they are deleted later. Returns their number. */
export async function leaveOlder(tx: Tx, repo: number, index: number): Promise<number> {
  return tx.run(sql`UPDATE tag_part_indexes SET repo_id = NULL, due = 0 WHERE repo_id = ${repo} AND id < ${index}`)
}

/** Detaches the indexes of a deleted repository. The job that indexes tags deletes their rows. */
export async function leaveAll(tx: Tx, repo: number): Promise<void> {
  await tx.run(sql`UPDATE tag_part_indexes SET repo_id = NULL, due = 0 WHERE repo_id = ${repo}`)
}

/** Deletes some rows of detached indexes. Returns the number of deleted rows. */
export async function dropSome(tx: Tx, most: number): Promise<number> {
  const left = await tx.get<{ id: number }>(sql`
    SELECT id FROM tag_part_indexes WHERE repo_id IS NULL ORDER BY id LIMIT 1`)
  if (!left) return 0
  const { id } = left
  const parts = await tx.run(sql`
    DELETE FROM tag_parts WHERE index_id = ${id} AND (gram, segment) IN (
      SELECT gram, segment FROM tag_parts WHERE index_id = ${id} ORDER BY gram, segment LIMIT ${most})`)
  if (parts > 0) return parts
  const names = await tx.run(sql`
    DELETE FROM tag_part_names WHERE index_id = ${id} AND bucket IN (
      SELECT bucket FROM tag_part_names WHERE index_id = ${id} ORDER BY bucket LIMIT ${most})`)
  if (names > 0) return names
  await tx.run(sql`DELETE FROM tag_part_segments WHERE index_id = ${id}`)
  return tx.run(sql`DELETE FROM tag_part_indexes WHERE id = ${id}`)
}

/** Start and direction of a page of names. `last` is empty for the first page. */
type NameRange = { last: string; desc: boolean }

/** Last of the next `most` names after `last`. `more` is true if more names can match. */
export async function lastNameOf(
  reader: Reader,
  repo: number,
  { prefix }: NameFilter,
  { most, ...range }: NameRange & { most: number },
): Promise<{ name: string; more: boolean } | undefined> {
  const outermost = range.desc ? sql`min(name)` : sql`max(name)`
  const found = await reader.get<{ name: string | null; looked: number }>(sql`
    SELECT ${outermost} AS name, CAST(count(*) AS BIGINT) AS looked
      FROM (SELECT name FROM tags WHERE repo_id = ${repo} AND ${inRange(prefix, range)}
             ORDER BY name ${directionOf(range)} LIMIT ${most}) AS next`)
  return found?.name ? { name: found.name, more: Number(found.looked) === most } : undefined
}

/** Matching tags after `last` and up to `upTo`, by name. */
export async function tagsByName(
  reader: Reader,
  repo: number,
  { prefix, part, asked }: NameFilter,
  { upTo, limit, ...range }: NameRange & { upTo: string; limit: number },
): Promise<Tag[]> {
  const end = range.desc ? sql`t.name >= ${upTo}` : sql`t.name <= ${upTo}`
  const rows = await reader.all<Row>(sql`
    SELECT ${tagColumns} FROM tags t
     WHERE t.repo_id = ${repo} AND ${inRange(prefix, range)} AND ${end} AND ${isAsked(part, asked)}
     ORDER BY t.name ${directionOf(range)} LIMIT ${limit}`)
  return rows.map(fromRow)
}

export async function countByName(reader: Reader, repo: number, { prefix, part, asked }: NameFilter): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM tags t
     WHERE t.repo_id = ${repo} AND ${within(prefix, '')} AND ${isAsked(part, asked)}`)
  return row?.total ?? 0
}

function isAsked(part: string, asked: number): Sql {
  const isVisible = sql`+t.shape IN (${list(visibleShapes(asked))})`
  return part === '' ? isVisible : sql`${hasPart(part)} AND ${isVisible}`
}

const directionOf = ({ desc }: NameRange): Sql => (desc ? sql`DESC` : sql`ASC`)

/** Condition that the name of a tag `t` contains the part. */
function hasPart(part: string): Sql {
  return holds(sql`lower(t.name)`, part)
}

const afterAll = '\u{10ffff}'

/** Range of names in the index of names. It has one lower bound, since SQLite would use only the first of two bounds. */
function within(prefix: string, last: string): Sql {
  const from = last < prefix ? sql`name >= ${prefix}` : sql`name > ${last}`
  return prefix === '' ? from : sql`${from} AND name < ${prefix + afterAll}`
}

function inRange(prefix: string, { last, desc }: NameRange): Sql {
  if (!desc) return within(prefix, last)
  const before = last === '' ? prefix + afterAll : last
  return sql`name >= ${prefix} AND name < ${before}`
}
