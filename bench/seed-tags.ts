// Creates a data folder with a repository of many tags, with a few SQL statements: pushing a million tags would take an hour.
import { readConfig } from '#config.ts'
import { ident, raw, type Sql, sql, type Tx } from '#db/sql.ts'
import { insertGroup } from '#domains/iam/groups/groups.store.ts'
import { findRepoRow, insertRepo } from '#domains/registry/repos/repos.store.ts'
import { newUid } from '#lib/uid.ts'
import { createApp } from '../src/create-app.ts'

/** Name such as `build-00000042`. One tag was made each second from the beginning of 2025. */
const columns: Record<string, Sql> = {
  name: raw(`printf('build-%08d', i)`),
  digest: raw(`printf('sha256:%064x', i)`),
  create_time: raw(`strftime('%Y-%m-%dT%H:%M:%S.000Z', 1735689600 + i, 'unixepoch')`),
  update_time: raw(`strftime('%Y-%m-%dT%H:%M:%S.000Z', 1735689600 + i, 'unixepoch')`),
}
const { name, digest, update_time: time } = columns as Record<'name' | 'digest' | 'update_time', Sql>

/** The repository `bench/large`, on SQLite. Its rows are those that imports of the ledger would have made. */
export async function seedTags(folder: string, count: number): Promise<void> {
  const app = await createApp({ ...readConfig({}), data: folder, logLevel: 'error' })
  const now = app.clock().toISOString()
  const org = newUid('/')
  const times = { description: '', createTime: now, updateTime: now }
  const group = { uid: org, name: 'bench', verified: false, kind: 0, status: 2, resourceLimits: {}, ...times }
  const uid = newUid(org)
  const scopes = ['/', org, uid]
  const catalogue = { catalogTier: 0, bundles: [], aliases: [], activeTags: [], syncConfig: undefined }
  await app.db.tx((tx) => insertGroup(tx, group))
  await app.db.tx((tx) => insertRepo(tx, { uid, name: 'large', ...catalogue, ...times }))
  const { id, ledger } = (await findRepoRow(app.db, { uid }))!
  const numbers = sql`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})`
  const tag = sql`${`${uid}/`} || printf('%016x', i)`
  await app.db.tx((tx) =>
    tx.run(sql`
      INSERT INTO tags (uid, repo_id, name, digest, shape, deprecated, bundles, create_time, update_time, assign_time)
      ${numbers} SELECT ${tag}, ${id}, ${name}, ${digest}, 0, 0, '[]', ${time}, ${time}, ${time} FROM n`),
  )
  await app.db.tx((tx) =>
    tx.run(sql`
      INSERT INTO tag_history (repo_id, tag, time, event, digest, previous_digest, media_type, size, actor, source)
      ${numbers} SELECT ${ledger}, ${name}, ${time}, 1, ${digest}, '', '', 0, '', 2 FROM n`),
  )
  // In the order of the key, so that all rows are appended.
  for (const column of Object.keys(columns).sort()) {
    for (const scope of scopes) await app.db.tx((tx) => listTags(tx, id, scope, column))
  }
  await app.db.tx(async (tx) => {
    for (const scope of scopes) {
      await tx.run(
        sql`INSERT INTO list_counts (kind, place, shard, total) VALUES ('tags.0', ${scope}, ${tx.shard}, ${count})`,
      )
    }
  })
  await app.close()
}

async function listTags(tx: Tx, repo: number, scope: string, column: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO list_keys (list, place, value, uid, id)
    SELECT ${`tags.0.${column}`}, ${scope}, ${ident(column)}, uid, id FROM tags WHERE repo_id = ${repo} ORDER BY id`)
}
