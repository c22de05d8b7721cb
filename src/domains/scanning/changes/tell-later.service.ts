// Tells what was resolved while more was found in a list of packages than is kept of one: nobody knew then whether another of
// its packages had the same.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import { reposOfLists } from '#domains/registry/images/image-lists.service.ts'
import { listsOf, type NamedList } from '../images/images.store.ts'
import * as store from './later.store.ts'
import { isWithin, type Telling, tellRepos } from './tell-changes.service.ts'

const atOnce = 200

/** Answers with how many events that were. */
export async function tellLater(app: App, lease: Lease): Promise<number> {
  let events = 0
  for (let after = 0; lease.holds(); ) {
    const listNo = await store.nextLater(app.db, after)
    if (listNo === undefined) break
    after = listNo
    const [list] = await listsOf(app.db, [listNo])
    if (list && (list.isOver || (await store.waitsForMatch(app.db, listNo)))) continue
    events += await tellList(app, lease, listNo, list)
  }
  return events
}

/** Nothing of a list that has gone. */
async function tellList(app: App, lease: Lease, listNo: number, list: NamedList | undefined): Promise<number> {
  const repos = list ? await reposOfLists(app.db, [list.key.hash]) : []
  let events = 0
  for (;;) {
    const some = await store.laterOf(app.db, listNo, atOnce)
    if (some.length === 0) return events
    for (const one of some) {
      const telling: Telling = {
        ...{ ...one, kind: 'resolved' },
        listsOf: async (tags) => new Map(list ? tags.filter(isOf(list)).map((tag) => [tag, list]) : []),
        isAtRest: async () => true,
        note: (tx, repo) => store.noteLaterRepo(tx, listNo, one, repo),
      }
      const within = repos.filter(({ repoUid }) => isWithin(one, repoUid))
      events += await tellRepos(app, lease, telling, within)
      await lease.tx((tx) => store.forgetLater(tx, one, [listNo]))
    }
  }
}

const isOf =
  ({ key: { hash, distribution } }: NamedList) =>
  ({ list }: { list: NamedList['key'] }): boolean =>
    list.hash === hash && list.distribution.id === distribution.id && list.distribution.version === distribution.version
