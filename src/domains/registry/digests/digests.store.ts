import { type Reader, sql } from '#db/sql.ts'
import type { Usage } from '../usage/digest-usage.model.ts'
import type { ReferrerRow } from './digests.model.ts'

type Asked = { subject: string; after: string; limit: number }

/** The manifests whose subject is the digest, by their digests. */
export async function referrersOf(reader: Reader, repo: number, { subject, after, limit }: Asked) {
  return reader.all<ReferrerRow>(sql`
    SELECT digest, media_type AS "mediaType", artifact_type AS "artifactType", size FROM manifests
     WHERE repo_id = ${repo} AND subject = ${subject} AND subject <> '' AND digest > ${after}
     ORDER BY digest LIMIT ${limit}`)
}

export type UsageRow = Omit<Usage, 'repo' | 'digest'>

/** What was counted of a digest, the newest day first. */
export async function newestUsage(reader: Reader, repo: number, digest: string, limit: number): Promise<UsageRow[]> {
  return reader.all<UsageRow>(sql`
    SELECT day, caller, gets, checks, last_time AS "lastTime" FROM digest_usage
     WHERE repo_id = ${repo} AND digest = ${digest}
     ORDER BY day DESC, caller DESC LIMIT ${limit}`)
}
