// Brings in what images contained before their packages were rows, so that nothing has to be pushed again.
import type { App } from '#app.ts'
import { nextContents, packagesOf } from '#domains/registry/images/image-contents.service.ts'
import { Walk } from '#lib/walk.ts'
import { completeList, prepareList } from './lists.service.ts'

/** Goes through all lists of packages behind the given hash; it may be ended and begun again at any time. */
export async function bringInLists(app: App, from: string, signal: AbortSignal): Promise<number> {
  let lists = 0
  for (let after = from; ; ) {
    signal.throwIfAborted()
    const contents = await nextContents(app.db, after)
    const [first] = contents
    if (!first) return lists
    after = first.packages
    const walk = new Walk({ steps: 10, bytes: 256 * 2 ** 20 }, signal, (limit) => new Error(`more than ${limit}`))
    const packages = await packagesOf(app.db, first.packages, walk)
    for (const { distribution, organization } of contents) {
      const list = await prepareList(app, { hash: first.packages, distribution }, packages)
      const now = app.clock().toISOString()
      await app.db.tx((tx) => completeList(tx, list, organization, now))
      if (list.isNew) lists++
    }
  }
}
