// Queries of views on the tag history. Each query reads a few rows from an index, however often a tag has moved.
import { join, list, type Reader, type Sql, sql } from '#db/sql.ts'
import { eventNumbers, sourceNumbers } from '#domains/registry/tags/tag-history.model.ts'
import { lineage } from '#lib/uid.ts'
import type { Assignment } from './views.model.ts'

/** A repository, with the number of its tag history. */
export type LedgerRepo = { id: number; uid: string; ledger: number }

/** A row of the tag history: an assignment or a deletion. */
export type Row = {
  time: string
  /** Time from which the assignment counts. */
  since: string
  digest: string
  deleted: boolean
  imported: boolean
  /** True if the repository can serve the digest now. */
  here: boolean
  /** True if the tag had the digest before. If assignments of all tags count, true if any tag of the repository had it. */
  known: boolean
}
type Stored = Record<'time' | 'digest', string> &
  Record<'event' | 'source' | 'here' | 'known', number> & { stored: string | null }

/**
 * Condition that a digest can be served: the repository has it, and it is not in quarantine. All queries of views use this
 * condition.
 */
function isServable({ id, uid }: LedgerRepo, digest: Sql): Sql {
  return sql`CASE WHEN EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = ${id} AND m.digest = ${digest})
                   AND NOT EXISTS (
                     SELECT 1 FROM quarantined q
                      WHERE q.digest = ${digest} AND q.release_time = '' AND q.scope_uid IN (${list(lineage(uid))}))
                  THEN 1 ELSE 0 END`
}

function rowOf({ time, digest, event, source, here, known, stored }: Stored): Row {
  const [deleted, imported] = [event === eventNumbers.deleted, source === sourceNumbers.import]
  return { time, since: sinceOf(time, stored), digest, deleted, imported, here: here === 1, known: known === 1 }
}

/**
 * Creation time of the manifest, for assignments by an upstream. The age of a digest begins when its content can be pulled here.
 */
function storedAt({ id }: LedgerRepo): Sql {
  return sql`CASE WHEN h.source = ${sourceNumbers.upstream}
                  THEN (SELECT m.create_time FROM manifests m WHERE m.repo_id = ${id} AND m.digest = h.digest) END`
}

function sinceOf(time: string, stored: string | null): string {
  return stored !== null && stored > time ? stored : time
}

/** The last row of a tag at a time. */
export async function lastRow(reader: Reader, repo: LedgerRepo, tag: string, until: string): Promise<Row | undefined> {
  const row = await reader.get<Stored>(sql`
    SELECT h.time, h.digest, h.event, h.source, ${storedAt(repo)} AS stored, ${isServable(repo, sql`h.digest`)} AS here,
           0 AS known
      FROM tag_history h
     WHERE h.repo_id = ${repo.ledger} AND h.tag = ${tag} AND h.time <= ${until} ORDER BY h.time DESC LIMIT 1`)
  return row && rowOf(row)
}

/** True if `latest` is still the last row of the tag. If `chosen` is given, the repository must also be able to serve it. */
export async function isUnchangedTag(
  reader: Reader,
  repo: LedgerRepo,
  tag: string,
  { until, latest, chosen }: { until: string; latest: { since: string; digest: string }; chosen: string | undefined },
): Promise<boolean> {
  const row = await reader.get<{ time: string; digest: string; here: number }>(sql`
    SELECT h.time, h.digest, ${chosen === undefined ? sql`1` : isServable(repo, sql`CAST(${chosen} AS TEXT)`)} AS here
      FROM tag_history h
     WHERE h.repo_id = ${repo.ledger} AND h.tag = ${tag} AND h.time <= ${until} ORDER BY h.time DESC LIMIT 1`)
  return row !== undefined && row.time === latest.since && row.digest === latest.digest && row.here === 1
}

/** Time of the first row after a time: of a tag, or of the whole repository. */
export async function firstAfter(
  reader: Reader,
  { ledger }: LedgerRepo,
  tag: string | undefined,
  time: string,
): Promise<string | undefined> {
  // Only this index has the rows of a repository ordered by time.
  const rows = tag === undefined ? sql`-repo_id = ${-ledger}` : sql`repo_id = ${ledger} AND tag = ${tag}`
  const row = await reader.get<{ time: string }>(sql`
    SELECT time FROM tag_history WHERE ${rows} AND time > ${time} ORDER BY time LIMIT 1`)
  return row?.time
}

/** Most rows of one digest that are searched for an earlier assignment under another tag. */
const mostEarlier = 200

/** Condition for an earlier assignment of a digest: to the same tag, or to any tag of the repository before `cut`. */
export type Known = { countFrom: 'tag' | 'repo'; cut: string }

function isKnown({ ledger }: LedgerRepo, { countFrom, cut }: Known): Sql {
  if (countFrom === 'tag') {
    return sql`EXISTS (SELECT 1 FROM tag_history o
      WHERE o.repo_id = h.repo_id AND o.digest = h.digest AND o.tag = h.tag AND o.time < h.time)`
  }
  return sql`EXISTS (SELECT 1 FROM (SELECT o.time FROM tag_history o
      WHERE o.repo_id = ${ledger} AND o.digest = h.digest ORDER BY o.tag, o.time LIMIT ${mostEarlier}) AS earliest
      WHERE earliest.time <= ${cut})`
}

/** Rows of a tag up to a time, the newest first. */
export async function rowsUntil(
  reader: Reader,
  repo: LedgerRepo,
  tag: string,
  { until, known, most }: { until: string; known: Known; most: number },
): Promise<Row[]> {
  const rows = await reader.all<Stored>(sql`
    SELECT h.time, h.digest, h.event, h.source, ${storedAt(repo)} AS stored, ${isServable(repo, sql`h.digest`)} AS here,
           CASE WHEN ${isKnown(repo, known)} THEN 1 ELSE 0 END AS known
      FROM tag_history h
     WHERE h.repo_id = ${repo.ledger} AND h.tag = ${tag} AND h.time <= ${until} ORDER BY h.time DESC LIMIT ${most}`)
  return rows.map(rowOf)
}

/** Rows that may be returns to an earlier digest, among the newest `among` rows after a time. */
export async function returnsIn(
  reader: Reader,
  repo: LedgerRepo,
  tag: string,
  range: { after: string; until: string; known: Known; among: number; most: number },
): Promise<Row[]> {
  const { after, until, known, among, most } = range
  const rows = await reader.all<Stored>(sql`
    SELECT h.time, h.digest, h.event, h.source, ${storedAt(repo)} AS stored, ${isServable(repo, sql`h.digest`)} AS here,
           1 AS known
      FROM (SELECT repo_id, tag, time, digest, event, source FROM tag_history
             WHERE repo_id = ${repo.ledger} AND tag = ${tag} AND time > ${after} AND time <= ${until}
             ORDER BY time DESC LIMIT ${among}) AS h
     WHERE h.event <> ${eventNumbers.deleted} AND ${isKnown(repo, known)}
     ORDER BY h.time DESC LIMIT ${most}`)
  return rows.map(rowOf)
}

/** The last assignment of a digest to a tag up to a time. */
export async function lastOf(reader: Reader, repo: LedgerRepo, tag: string, digest: string, until: string) {
  const row = await reader.get<Stored>(sql`
    SELECT h.time, h.digest, h.event, h.source, ${storedAt(repo)} AS stored, ${isServable(repo, sql`h.digest`)} AS here,
           1 AS known
      FROM (SELECT tag, time FROM tag_history
             WHERE repo_id = ${repo.ledger} AND digest = ${digest} AND tag = ${tag} AND time <= ${until}
             ORDER BY time DESC LIMIT 2) AS found
      JOIN tag_history h ON h.repo_id = ${repo.ledger} AND h.tag = found.tag AND h.time = found.time
     WHERE h.event <> ${eventNumbers.deleted}
     ORDER BY h.time DESC LIMIT 1`)
  return row && rowOf(row)
}

type StoredAssignment = Record<'tag' | 'digest' | 'begin', string> & {
  event: number
  source: number
  here: number
  stored: string | null
  end: string | null
  endEvent: number | null
  endDigest: string | null
}
export type FoundAssignment = Assignment & { here: boolean; deletion: boolean; imported: boolean }

function toAssignment(row: StoredAssignment): FoundAssignment {
  const { tag, digest, begin, event, source, here, stored, end, endEvent, endDigest } = row
  const ended = end === null ? undefined : { time: end, deleted: endEvent === eventNumbers.deleted, digest: endDigest! }
  const [deletion, imported] = [event === eventNumbers.deleted, source === sourceNumbers.import]
  return { tag, digest, begin, since: sinceOf(begin, stored), end: ended, here: here === 1, deletion, imported }
}

/**
 * Each row that `found` names by tag and time, with the next row of the tag up to `until`. The limits keep PostgreSQL from
 * merging the parts, which would read all rows of a tag.
 */
function assignmentsFrom(repo: LedgerRepo, found: Sql, until: string, most: number): Sql {
  return sql`
    SELECT h.tag, h.digest, h.time AS begin, h.event, h.source, ${storedAt(repo)} AS stored, ${isServable(repo, sql`h.digest`)} AS here,
           n.time AS "end", n.event AS "endEvent", n.digest AS "endDigest"
      FROM (SELECT f.tag, f.time, (
                   SELECT x.time FROM tag_history x
                    WHERE x.repo_id = ${repo.ledger} AND x.tag = f.tag AND x.time > f.time AND x.time <= ${until}
                    ORDER BY x.time LIMIT 1) AS ended
              FROM (${found}) AS f LIMIT ${most}) AS found
      JOIN tag_history h ON h.repo_id = ${repo.ledger} AND h.tag = found.tag AND h.time = found.time
      LEFT JOIN tag_history n ON n.repo_id = ${repo.ledger} AND n.tag = found.tag AND n.time = found.ended`
}

/** Assignments of the tag at these times, in any order. Several times in the same assignment give one row. */
export async function assignmentsAt(
  reader: Reader,
  repo: LedgerRepo,
  tag: string,
  times: readonly string[],
  until: string,
): Promise<FoundAssignment[]> {
  const values = times.map((time) => sql`SELECT CAST(${time} AS TEXT) AS point`)
  const found = sql`
    SELECT DISTINCT CAST(${tag} AS TEXT) AS tag, (
             SELECT x.time FROM tag_history x
              WHERE x.repo_id = ${repo.ledger} AND x.tag = ${tag} AND x.time <= points.point
              ORDER BY x.time DESC LIMIT 1) AS time
      FROM (${join(values, ' UNION ALL ')}) AS points`
  const rows = await reader.all<StoredAssignment>(
    sql`${assignmentsFrom(repo, found, until, times.length)} ORDER BY h.time DESC`,
  )
  return rows.map(toAssignment)
}

/** Rows of a digest up to a time, including deletions, the oldest of each tag first. Either of one tag or of any tag. */
export async function rowsOfDigest(
  reader: Reader,
  repo: LedgerRepo,
  digest: string,
  { tag, began, until, most }: { tag: string | undefined; began: string; until: string; most: number },
): Promise<FoundAssignment[]> {
  const under = tag === undefined ? sql`` : sql`AND tag = ${tag}`
  const found = sql`
    SELECT tag, time FROM tag_history
     WHERE repo_id = ${repo.ledger} AND digest = ${digest} ${under} AND time <= ${began}
     ORDER BY tag, time LIMIT ${most}`
  const rows = await reader.all<StoredAssignment>(
    sql`${assignmentsFrom(repo, found, until, most)} ORDER BY h.tag, h.time`,
  )
  return rows.map(toAssignment)
}

/** True if the tag pointed to the digest before this assignment. */
export async function hadDigestBefore(
  reader: Reader,
  { ledger }: LedgerRepo,
  stay: Assignment,
  digest: string,
): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM tag_history
     WHERE repo_id = ${ledger} AND digest = ${digest} AND tag = ${stay.tag} AND time < ${stay.begin} LIMIT 1`)
  return row !== undefined
}

/** Name of a tag in the history, with its last assignment up to a time. The time is empty if the tag did not exist then. */
export type NamedRow = { tag: string; time: string; since: string; here: boolean }

/** Names of tags in the history after `last`, in byte order, each with its last row up to a time. */
export async function namesUntil(
  reader: Reader,
  repo: LedgerRepo,
  { last, until, most, among }: { last: string; until: string; most: number; among?: readonly string[] | undefined },
): Promise<NamedRow[]> {
  const next = (after: Sql): Sql =>
    sql`(SELECT tag FROM tag_history WHERE repo_id = ${repo.ledger} AND tag > ${after} ORDER BY tag LIMIT 1)`
  const walk = sql`
      SELECT ${next(sql`CAST(${last} AS TEXT)`)}, 1
       UNION ALL
      SELECT ${next(sql`names.tag`)}, names.n + 1 FROM names WHERE names.tag IS NOT NULL AND names.n < ${most}`
  const given = among?.filter((name) => Buffer.compare(Buffer.from(name), Buffer.from(last)) > 0)
  if (given?.length === 0) return []
  const parts = given?.map((name) => sql`SELECT CAST(${name} AS TEXT), 1`)
  const rows = await reader.all<{ tag: string; time: string; here: number; stored: string | null }>(sql`
    WITH RECURSIVE names (tag, n) AS (${parts ? join(parts, ' UNION ALL ') : walk})
    SELECT found.tag, CASE WHEN h.event <> ${eventNumbers.deleted} THEN h.time ELSE '' END AS time,
           ${storedAt(repo)} AS stored, ${isServable(repo, sql`h.digest`)} AS here
      FROM (SELECT names.tag, (
                   SELECT x.time FROM tag_history x
                    WHERE x.repo_id = ${repo.ledger} AND x.tag = names.tag AND x.time <= ${until}
                    ORDER BY x.time DESC LIMIT 1) AS last
              FROM names WHERE names.tag IS NOT NULL LIMIT ${most}) AS found
      LEFT JOIN tag_history h ON h.repo_id = ${repo.ledger} AND h.tag = found.tag AND h.time = found.last
     ORDER BY found.tag`)
  return rows.map(({ tag, time, here, stored }) => ({ tag, time, since: sinceOf(time, stored), here: here === 1 }))
}

/** The given names of tags that had a row at a time. */
export async function tagsExistingAt(reader: Reader, { ledger }: LedgerRepo, names: readonly string[], time: string) {
  if (names.length === 0) return new Set<string>()
  const rows = await reader.all<{ name: string }>(sql`
    SELECT t.name FROM (${join(
      names.map((name) => sql`SELECT CAST(${name} AS TEXT) AS name`),
      ' UNION ALL ',
    )}) AS t
     WHERE EXISTS (SELECT 1 FROM tag_history h WHERE h.repo_id = ${ledger} AND h.tag = t.name AND h.time <= ${time})`)
  return new Set(rows.map(({ name }) => name))
}
