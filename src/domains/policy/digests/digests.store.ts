import { countRows } from '#db/bulk.ts'
import { pageTail, pastCursor } from '#db/listing-beyond.ts'
import { join, type Reader, type Sql, sql } from '#db/sql.ts'
import type { Usage } from '#domains/registry/usage/digest-usage.model.ts'
import type { Page } from '#lib/lists/paging.ts'
import type { ReferrerRow } from './digests.model.ts'

const byDigest = [sql`digest`]

/** One page of the manifests with this subject, by digest, and one more row. */
export async function referrersOf(reader: Reader, repo: number, subject: string, page: Page) {
  return reader.all<ReferrerRow>(sql`
    SELECT digest, media_type AS "mediaType", artifact_type AS "artifactType", size FROM manifests
     WHERE ${about(repo, subject)} AND ${pastCursor(page, byDigest, [page.after?.value ?? ''])}
     ${pageTail(page, byDigest)}`)
}

export async function countReferrers(reader: Reader, repo: number, subject: string): Promise<number> {
  return countRows(reader, sql`FROM manifests WHERE ${about(repo, subject)}`)
}

const about = (repo: number, subject: string): Sql => {
  return sql`repo_id = ${repo} AND subject = ${subject} AND subject <> ''`
}

export type UsageRow = Omit<Usage, 'repo' | 'digest'>

/** Usage of a digest, the newest day first. */
export async function newestUsage(reader: Reader, repo: number, digest: string, limit: number): Promise<UsageRow[]> {
  return reader.all<UsageRow>(sql`
    SELECT day, caller, gets, checks, last_time AS "lastTime" FROM digest_usage
     WHERE repo_id = ${repo} AND digest = ${digest}
     ORDER BY day DESC, caller DESC LIMIT ${limit}`)
}

export type UnpulledRow = { digest: string; mediaType: string; size: number; createTime: string }

/** Condition on usage rows `p`: the caller is not one of these identities, and not a push token of one of them. */
function others(except: readonly string[]): Sql {
  if (except.length === 0) return sql`1 = 1`
  const ofThem = except.map((uid) => sql`p.caller = ${uid} OR (p.caller > ${`${uid}/`} AND p.caller < ${`${uid}0`})`)
  return sql`NOT (${join(ofThem, ' OR ')})`
}

/**
 * Condition on usage rows `p`: the manifest was pulled with GET. Merged rows are left out if the table of last pulls has the
 * callers.
 */
const counted = sql`
  p.gets > 0 AND (p.caller <> '*' OR NOT EXISTS (
    SELECT 1 FROM digest_last_pulls l
     WHERE l.repo_id = p.repo_id AND l.digest = p.digest AND l.last_time >= p.day))`

type Pull = { time: string; caller: string }

/** Order of a page of manifests, and the digest after which the page begins. */
export type Range = { after: string | undefined; desc: boolean }

function past({ after, desc }: Range): Sql {
  if (after === undefined) return sql`1 = 1`
  return desc ? sql`m.digest < ${after}` : sql`m.digest > ${after}`
}

const inOrder = ({ desc }: Range): Sql => (desc ? sql`m.digest DESC` : sql`m.digest ASC`)

/** Digest at the end of the next `most` manifests. Returns undefined if there are fewer. */
export async function endOfWindow(reader: Reader, repo: number, range: Range, most: number) {
  const row = await reader.get<{ digest: string }>(sql`
    SELECT m.digest FROM manifests m
     WHERE m.repo_id = ${repo} AND ${past(range)} ORDER BY ${inOrder(range)} LIMIT 1 OFFSET ${most - 1}`)
  return row?.digest
}

export type UnpulledQuery = Range & { upTo: string | undefined; since: string; except: readonly string[] }

/** Manifests in a range of digests. They were pushed before `since` and have not been pulled after it. */
export async function unpulledIn(
  reader: Reader,
  repo: number,
  asked: UnpulledQuery,
  { skip, most }: { skip: number; most: number },
): Promise<UnpulledRow[]> {
  return reader.all<UnpulledRow>(sql`
    SELECT m.digest, m.media_type AS "mediaType", m.size, m.create_time AS "createTime" FROM manifests m
     WHERE ${isUnpulled(repo, asked)} ORDER BY ${inOrder(asked)} LIMIT ${most} OFFSET ${skip}`)
}

export async function countUnpulled(reader: Reader, repo: number, asked: UnpulledQuery): Promise<number> {
  return countRows(reader, sql`FROM manifests m WHERE ${isUnpulled(repo, asked)}`)
}

function isUnpulled(repo: number, { upTo, since, except, ...range }: UnpulledQuery): Sql {
  const end = upTo === undefined ? sql`1 = 1` : range.desc ? sql`m.digest >= ${upTo}` : sql`m.digest <= ${upTo}`
  return sql`
    m.repo_id = ${repo} AND ${past(range)} AND ${end} AND m.create_time <= ${since}
       AND NOT EXISTS (
             SELECT 1 FROM digest_usage p
              WHERE p.repo_id = m.repo_id AND p.digest = m.digest AND p.day >= ${since.slice(0, 10)}
                AND p.last_time > ${since} AND ${counted} AND ${others(except)})
       AND NOT EXISTS (
             SELECT 1 FROM digest_last_pulls p
              WHERE p.repo_id = m.repo_id AND p.digest = m.digest AND p.last_time > ${since} AND ${others(except)})`
}

/** The last known pull of a manifest by a caller who is not excluded. */
export async function lastPull(
  reader: Reader,
  repo: number,
  digest: string,
  except: readonly string[],
): Promise<Pull | undefined> {
  const inUsage = await reader.get<Pull>(sql`
    SELECT p.last_time AS time, p.caller FROM digest_usage p
     WHERE p.repo_id = ${repo} AND p.digest = ${digest} AND ${counted} AND ${others(except)}
     ORDER BY p.day DESC, p.last_time DESC, p.caller LIMIT 1`)
  const before = await reader.get<Pull>(sql`
    SELECT p.last_time AS time, p.caller FROM digest_last_pulls p
     WHERE p.repo_id = ${repo} AND p.digest = ${digest} AND ${others(except)}
     ORDER BY p.last_time DESC, p.caller LIMIT 1`)
  return !inUsage || (before && before.time > inUsage.time) ? before : inUsage
}

/** Time of the last HEAD request for a manifest. */
export async function lastCheck(reader: Reader, repo: number, digest: string): Promise<string | undefined> {
  const row = await reader.get<{ time: string }>(sql`
    SELECT u.last_time AS time FROM digest_usage u
     WHERE u.repo_id = ${repo} AND u.digest = ${digest} AND u.checks > 0
     ORDER BY u.day DESC, u.last_time DESC LIMIT 1`)
  return row?.time
}
