// Adds package rows for images that earlier releases stored without such rows. So no image has to be pushed again.
import type { App } from '#app.ts'
import { nextContents, packagesOfList } from '#domains/registry/images/image-contents.service.ts'
import { Walk } from '#lib/scheduling/walk.ts'
import { listStates } from './lists.model.ts'
import { completeList, prepareList } from './lists.service.ts'
import { findList } from './lists.store.ts'

const listsAtOnce = 20

/**
 * Adds some package lists after the given hash. Returns the last hash, or undefined if there are no more. Can be interrupted and
 * repeated at any time.
 */
export async function bringInLists(app: App, from: string, signal: AbortSignal): Promise<string | undefined> {
  let after = from
  for (let lists = 0; lists < listsAtOnce; lists++) {
    signal.throwIfAborted()
    const contents = await nextContents(app.db, after)
    const [first] = contents
    if (!first) return undefined
    after = first.packages
    await insertLists(app, after, contents, signal)
  }
  return after
}

async function insertLists(app: App, hash: string, contents: Contents, signal: AbortSignal): Promise<void> {
  const missing = []
  for (const one of contents) {
    const list = await findList(app.db, { hash, distribution: one.distribution })
    if (list?.state !== listStates.complete) missing.push(one)
  }
  if (missing.length === 0) return
  const walk = new Walk({ steps: 10, bytes: 256 * 2 ** 20 }, signal, (limit) => new Error(`more than ${limit}`))
  const packages = await packagesOfList(app.db, hash, walk)
  // The last image with this list was deleted in the meantime.
  if (!packages) return
  for (const { distribution, organization } of missing) {
    const list = await prepareList(app, { hash, distribution }, packages)
    const now = app.clock().toISOString()
    await app.db.tx((tx) => completeList(tx, list, organization, now))
  }
}

type Contents = Awaited<ReturnType<typeof nextContents>>
