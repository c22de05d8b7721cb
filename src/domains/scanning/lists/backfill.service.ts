// Brings in what images contained before their packages were rows, so that nothing has to be pushed again.
import type { App } from '#app.ts'
import { keptPackagesOf, nextContents } from '#domains/registry/images/image-contents.service.ts'
import { Walk } from '#lib/scheduling/walk.ts'
import { listStates } from './lists.model.ts'
import { completeList, prepareList } from './lists.service.ts'
import { findList } from './lists.store.ts'

const listsAtOnce = 20

/**
 * Brings in some lists of packages behind the given hash; answers with the last, or undefined when there are no more. It
 * may be ended and begun again at any time.
 */
export async function bringInLists(app: App, from: string, signal: AbortSignal): Promise<string | undefined> {
  let after = from
  for (let lists = 0; lists < listsAtOnce; lists++) {
    signal.throwIfAborted()
    const contents = await nextContents(app.db, after)
    const [first] = contents
    if (!first) return undefined
    after = first.packages
    await bringIn(app, after, contents, signal)
  }
  return after
}

async function bringIn(app: App, hash: string, contents: Contents, signal: AbortSignal): Promise<void> {
  const missing = []
  for (const one of contents) {
    const list = await findList(app.db, { hash, distribution: one.distribution })
    if (list?.state !== listStates.complete) missing.push(one)
  }
  if (missing.length === 0) return
  const walk = new Walk({ steps: 10, bytes: 256 * 2 ** 20 }, signal, (limit) => new Error(`more than ${limit}`))
  const packages = await keptPackagesOf(app.db, hash, walk)
  // The last image that had it was deleted meanwhile.
  if (!packages) return
  for (const { distribution, organization } of missing) {
    const list = await prepareList(app, { hash, distribution }, packages)
    const now = app.clock().toISOString()
    await app.db.tx((tx) => completeList(tx, list, organization, now))
  }
}

type Contents = Awaited<ReturnType<typeof nextContents>>
