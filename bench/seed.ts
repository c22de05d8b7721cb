// Fills a data folder with repositories, through the store of the server.
import { readConfig } from '#config.ts'
import { insertGroup } from '#domains/iam/groups/groups.store.ts'
import { insertRepo } from '#domains/registry/repos/repos.store.ts'
import { newUid } from '#lib/uid.ts'
import { createApp } from '../src/create-app.ts'

/** Creates repositories in 100 folders of one organization. Returns the uids of the organization and of one repository. */
export async function seed(folder: string, count: number): Promise<{ org: string; repo: string }> {
  const app = await createApp({ ...readConfig({}), data: folder, logLevel: 'error' })
  const now = new Date().toISOString()
  const group = (uid: string, name: string) => {
    const rest = {
      description: '',
      verified: false,
      kind: 0,
      status: 2,
      resourceLimits: {},
      createTime: now,
      updateTime: now,
    }
    return app.db.tx((tx) => insertGroup(tx, { uid, name, ...rest }))
  }
  const org = newUid('/')
  await group(org, 'bench')
  const folders: string[] = []
  for (let i = 0; i < Math.min(100, count); i++) {
    folders.push(newUid(org))
    await group(folders[i]!, `folder-${i}`)
  }
  let repo = ''
  const batch = 2000
  for (let done = 0; done < count; done += batch) {
    await app.db.tx(async (tx) => {
      for (let i = done; i < Math.min(done + batch, count); i++) {
        repo = newUid(folders[i % folders.length]!)
        const time = new Date(Date.parse(now) + i).toISOString()
        const rest = {
          catalogTier: 0,
          bundles: [],
          aliases: [],
          activeTags: [],
          syncConfig: undefined,
          createTime: time,
          updateTime: time,
        }
        await insertRepo(tx, {
          uid: repo,
          name: `image-${i}`,
          description: 'An image of the shop, rebuilt nightly',
          ...rest,
        })
      }
    })
  }
  await app.close()
  return { org, repo }
}
