// Contents of deleted images, and former contents of images that were read again. Reports about past days need these contents.
// Pushes could fill the database with them, so only the newest of each organization are kept.
import { setImmediate } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Db } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import * as store from './deleted-contents.store.ts'
import { deleteSomeContents } from './image-contents.store.ts'

/** `tx` runs a transaction under a lease. `check` throws if the lease has ended. */
export type Forgetting = { app: Pick<App, 'db' | 'config'>; tx: Db['tx']; check(): void }

type Kept = { repo: number; digest: string; time: string; isGone: boolean }

const pageSize = 500
const atOnce = 100

/** Deletes the oldest rows of each organization that has more rows than the limit. */
export async function deleteRecordsOfDeleted(forgetting: Forgetting): Promise<void> {
  const most = forgetting.app.config.vulnerabilityDeletedImages
  const kept = new Map<string, Kept[]>()
  for await (const { organization, ...one } of storedContents(forgetting)) {
    const rows = kept.get(organization) ?? []
    kept.set(organization, rows)
    rows.push(one)
    // Deletes early, so that at most twice the limit is in memory. Rows above the limit are deleted in any case.
    if (rows.length >= 2 * most) await forgetOldest(forgetting, rows, most)
  }
  for (const rows of kept.values()) await forgetOldest(forgetting, rows, most)
}

async function* storedContents({ app, check }: Forgetting): AsyncGenerator<Kept & { organization: string }> {
  for (let after = { repo: 0, digest: '' }; ; ) {
    const page = await store.contentsAfter(app.db, after, pageSize)
    for (const { isGone, ...row } of page) if (isGone) yield { ...row, isGone }
    if (page.length < pageSize) break
    after = page.at(-1)!
    await setImmediate()
    check()
  }
  for (let after = { repo: 0, digest: '', time: '' }; ; ) {
    const page = await store.pastAfter(app.db, after, pageSize)
    for (const row of page) yield { ...row, isGone: false }
    if (page.length < pageSize) break
    after = page.at(-1)!
    await setImmediate()
    check()
  }
}

/** Deletes all rows except the newest `most`. */
async function forgetOldest(forgetting: Forgetting, rows: Kept[], most: number): Promise<void> {
  if (rows.length <= most) return
  rows.sort((one, other) => (one.time > other.time ? -1 : one.time < other.time ? 1 : 0))
  const old = rows.splice(most)
  for (const [repo, those] of Map.groupBy(old, (one) => one.repo)) {
    for (const some of chunks(those, atOnce)) await forget(forgetting, repo, some)
  }
}

async function forget({ tx, check }: Forgetting, repo: number, some: readonly Kept[]): Promise<void> {
  const [images, past] = [some.filter(({ isGone }) => isGone), some.filter(({ isGone }) => !isGone)]
  await tx(async (within) => {
    // An image may have been pushed again meanwhile.
    const digests = images.map(({ digest }) => digest)
    const gone = digests.length === 0 ? [] : await store.missingDigests(within, repo, digests)
    if (gone.length > 0) {
      await deleteSomeContents(within, repo, gone)
      await store.deleteAllPast(within, repo, gone)
    }
    if (past.length > 0) await store.deletePast(within, repo, past)
  })
  await setImmediate()
  check()
}
