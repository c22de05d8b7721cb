import { pageTail, pastCursor } from '#db/listing-beyond.ts'
import { type Reader, type Sql, sql } from '#db/sql.ts'
import type { Usage } from '#domains/registry/usage/digest-usage.model.ts'
import type { Page } from '#lib/lists/paging.ts'
import type { ReferrerRow } from './digests.model.ts'

const byDigest = [sql`digest`]

/** A page of the manifests whose subject is the digest, by their digests, and one more. */
export async function referrersOf(reader: Reader, repo: number, subject: string, page: Page) {
  return reader.all<ReferrerRow>(sql`
    SELECT digest, media_type AS "mediaType", artifact_type AS "artifactType", size FROM manifests
     WHERE ${about(repo, subject)} AND ${pastCursor(page, byDigest, [page.after?.value ?? ''])}
     ${pageTail(page, byDigest)}`)
}

export async function countReferrers(reader: Reader, repo: number, subject: string): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM manifests WHERE ${about(repo, subject)}`)
  return row?.total ?? 0
}

const about = (repo: number, subject: string): Sql => {
  return sql`repo_id = ${repo} AND subject = ${subject} AND subject <> ''`
}

export type UsageRow = Omit<Usage, 'repo' | 'digest'>

/** What was counted of a digest, the newest day first. */
export async function newestUsage(reader: Reader, repo: number, digest: string, limit: number): Promise<UsageRow[]> {
  return reader.all<UsageRow>(sql`
    SELECT day, caller, gets, checks, last_time AS "lastTime" FROM digest_usage
     WHERE repo_id = ${repo} AND digest = ${digest}
     ORDER BY day DESC, caller DESC LIMIT ${limit}`)
}
