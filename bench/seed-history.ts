import { readConfig } from '#config.ts'
import { join as joined, sql } from '#db/sql.ts'
import { insertGroup } from '#domains/iam/groups/groups.store.ts'
import { findRepoRow, insertRepo } from '#domains/registry/repos/repos.store.ts'
import { newUid } from '#lib/uid.ts'
import { createApp } from '../src/create-app.ts'

const second = 1000
const from = Date.parse('2025-01-01T00:00:00.000Z')

/**
 * Creates an organization with two repositories. In one of them, a tag has moved `records` times, once a second, and half of the
 * moves were before 2025. Another tag has moved 1,000 times since 2025.
 */
export async function seedHistory(folder: string, records: number): Promise<void> {
  const app = await createApp({ ...readConfig({}), data: folder, logLevel: 'error' })
  const now = app.clock().toISOString()
  const org = newUid('/')
  const rest = {
    description: '',
    verified: false,
    kind: 0,
    status: 2,
    resourceLimits: {},
    createTime: now,
    updateTime: now,
  }
  await app.db.tx((tx) => insertGroup(tx, { uid: org, name: 'bench', ...rest }))
  for (const name of ['app', 'history']) {
    const catalogue = { catalogTier: 0, bundles: [], aliases: [], activeTags: [], syncConfig: undefined }
    const repo = { uid: newUid(org), name, description: '', ...catalogue, createTime: now, updateTime: now }
    await app.db.tx((tx) => insertRepo(tx, repo))
  }
  const { ledger } = (await findRepoRow(app.db, { group: org, name: 'history' }))!
  const digest = (i: number) => `sha256:${i.toString(16).padStart(64, '0')}`
  const write = async (tag: string, count: number, start: number) => {
    for (let done = 0; done < count; done += 1000) {
      const rows = Array.from({ length: Math.min(1000, count - done) }, (_, k) => {
        const i = done + k
        const time = new Date(start + i * second).toISOString()
        return sql`(${ledger}, ${tag}, ${time}, 2, ${digest(i + 1)}, ${digest(i)}, '', 0, '', 1)`
      })
      await app.db.tx((tx) =>
        tx.run(sql`
          INSERT INTO tag_history (repo_id, tag, time, event, digest, previous_digest, media_type, size, actor, source)
          VALUES ${joined(rows, ', ')}`),
      )
    }
  }
  await write('long', records, from - Math.floor(records / 2) * second)
  await write('short', 1000, from)
  await app.close()
}
