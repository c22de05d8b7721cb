// Images and tags for tests, and the rows of the tag history from the database.
import { createHash } from 'node:crypto'
import { type Sql, sql } from '#db/sql.ts'
import type { Json, Pinfold } from './pinfold.ts'

export const digestOf = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`

export const manifestType = 'application/vnd.oci.image.manifest.v1+json'

/** Adds a manifest to a repository as a push would. Returns its digest. */
export async function plantManifest(
  { app }: Pinfold,
  repo: string,
  content: Json | string,
  mediaType = manifestType,
): Promise<string> {
  const text = typeof content === 'string' ? content : JSON.stringify(content)
  const digest = digestOf(text)
  await app.db.tx(async (tx) => {
    await tx.run(sql`
      INSERT INTO manifests
             (repo_id, digest, media_type, artifact_type, subject, size, annotations, create_time, content)
      SELECT id, ${digest}, ${mediaType}, '', '', CAST(${text.length} AS BIGINT), '{}', ${app.clock().toISOString()},
             ${Buffer.from(text)}
        FROM repos WHERE uid = ${repo}
          ON CONFLICT (repo_id, digest) DO NOTHING`)
  })
  return digest
}

/** Points a tag at a new manifest through the API. Returns the tag. */
export async function plantTag(pinfold: Pinfold, repo: string, name: string, image = name): Promise<Json> {
  const digest = await plantManifest(pinfold, repo, image)
  const answer = await pinfold.operator.post(`/registry/v2/tags/${repo}`, { name, digest })
  if (answer.status !== 200) throw new Error(`tag ${name} failed: ${answer.text}`)
  return answer.body
}

export type LedgerRow = {
  tag: string
  time: string
  event: number
  digest: string
  previous: string
  actor: string
  source: number
  type: string
  size: number
}

/** Rows of the tag history of a repository, sorted by tag, oldest first. The repository may be deleted. */
export function ledgerOf({ app }: Pinfold, repo: string): Promise<LedgerRow[]> {
  return app.db.all<LedgerRow>(sql`
    SELECT tag, time, event, digest, previous_digest AS previous, actor, source, media_type AS type, size
      FROM tag_history
     WHERE repo_id = (SELECT ledger_id FROM repos WHERE uid = ${repo}
                       UNION ALL SELECT ledger_id FROM deleted_repos WHERE uid = ${repo})
     ORDER BY tag, time`)
}

/** Adds any number of moves to a tag history in one statement. They are one second apart and have no actor. */
export async function plantMoves(
  { app: { db } }: Pick<Pinfold, 'app'>,
  { ledger }: { ledger: number },
  moves: readonly { tag: string; digest: string }[],
): Promise<void> {
  const rows = JSON.stringify(
    moves.map((move, i) => ({ ...move, time: new Date(Date.parse('2026-01-01') + i * 1000).toISOString() })),
  )
  const member = (name: string): Sql =>
    db.engine === 'sqlite' ? sql`json_extract(value, ${`$.${name}`})` : sql`value->>CAST(${name} AS TEXT)`
  const all =
    db.engine === 'sqlite' ? sql`json_each(${rows})` : sql`json_array_elements(CAST(${rows} AS JSON)) AS of (value)`
  await db.tx((tx) =>
    tx.run(sql`
      INSERT INTO tag_history (repo_id, tag, time, event, digest, previous_digest, media_type, size, actor, source)
      SELECT CAST(${ledger} AS BIGINT), ${member('tag')}, ${member('time')}, 2, ${member('digest')}, '', '', 0, '', 1
        FROM ${all}`),
  )
}
