// Deletes the package lists of deleted images, and the findings in packages that no other list contains.

import { setImmediate } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Db, Tx } from '#db/sql.ts'
import { bytesOfSigned, countBytes } from '#domains/registry/blobs/usage.service.ts'
import { isInUse, organizationsWith } from '#domains/registry/images/past-contents.service.ts'
import { forgetOpen } from '../findings/open-findings.store.ts'
import { type ListKey, listStates } from '../lists/lists.model.ts'
import { passOn } from '../lists/lists.service.ts'
import * as lists from '../lists/lists.store.ts'
import { type MatchItem, wholeList } from '../queue/queue.model.ts'
import { queueMatches } from '../queue/queue.store.ts'
import * as signed from '../scan-reports/signed-statements.store.ts'
import * as store from './cleanup.store.ts'

/** `tx` runs a transaction that fails if the job has lost its lease. `check` throws if the lease has ended. */
export type Sweeping = { app: Pick<App, 'db' | 'clock' | 'config'>; tx: Db['tx']; check(): void }

/** Age in ms below which a list is never deleted, because a list can be written some time before its image. */
const graceMs = 24 * 60 * 60_000
const listsAtOnce = 200
const rowsAtOnce = 200

/** Deletes package lists that belong to no image. Returns the number of deleted lists. */
export async function sweepLists(sweeping: Sweeping): Promise<number> {
  const { app, tx } = sweeping
  const before = new Date(app.clock().getTime() - graceMs).toISOString()
  let deleted = 0
  for (let after = 0; ; ) {
    const page = await store.listsAfter(app.db, after, listsAtOnce)
    const last = page.at(-1)
    if (!last) return deleted
    after = last.listNo
    await countLists(sweeping, page)
    for (const { listNo, state, createTime, payer, hasEcosystems, isUncounted: _, ...key } of page) {
      if (!hasEcosystems && state === listStates.complete) await noteEcosystems(sweeping, listNo)
      if (state !== listStates.gone) {
        if (createTime >= before) continue
        if (await isInUse(app.db, key)) {
          await chargeAnotherPayer(sweeping, listNo, payer, key)
          continue
        }
        const isBuried = await tx(async (within) => {
          // The transaction checks again, because an image with the same packages may have been pushed in the meantime.
          if (await isInUse(within, key)) return false
          await store.markListDeleted(within, listNo)
          return true
        })
        if (!isBuried) continue
      }
      await deleteList(sweeping, listNo)
      deleted++
    }
    await pause(sweeping)
  }
}

/** Queues package lists whose findings must be counted, because a server of an earlier version compared these lists. */
async function countLists({ app, tx }: Sweeping, page: readonly store.ListPage[]): Promise<void> {
  const items = page
    .filter(({ isUncounted }) => isUncounted)
    .map(({ listNo }): MatchItem => ({ kind: 'counts', organization: '', item: wholeList(listNo) }))
  if (items.length > 0) await tx((within) => queueMatches(within, items, app.clock().toISOString()))
}

/** Stores the ecosystems of a package list that an earlier release wrote. */
async function noteEcosystems({ app, tx }: Sweeping, listNo: number): Promise<void> {
  const ecosystems = await lists.ecosystemsOfList(app.db, { listNo, ecosystems: undefined })
  await tx((within) => lists.noteEcosystems(within, listNo, ecosystems))
}

/**
 * If the organization that is charged for a package list has no image with the list any more, charges another organization that
 * has one.
 */
async function chargeAnotherPayer({ app, tx }: Sweeping, listNo: number, payer: string, key: ListKey): Promise<void> {
  if (payer === '') return
  const users = await organizationsWith(app.db, key)
  const next = users.includes(payer) ? payer : (users[0] ?? payer)
  if (next !== payer) await tx((within) => passOn(within, listNo, next))
}

async function deleteList(sweeping: Sweeping, listNo: number): Promise<void> {
  for (;;) {
    const emptied = await sweeping.tx((within) => store.emptyList(within, listNo, rowsAtOnce))
    if (emptied === 0) break
    await pause(sweeping)
  }
  await sweeping.tx(async (within) => {
    await passOn(within, listNo, '')
    await store.deleteList(within, listNo)
  })
}

/** Deletes packages that no list contains, and all findings in these packages. Returns the number of deleted packages. */
export async function sweepComponents(sweeping: Sweeping): Promise<number> {
  const { app } = sweeping
  let components = 0
  for (let after = 0; ; ) {
    const page = await store.componentsOnHoldAfter(app.db, after, rowsAtOnce)
    const last = page.at(-1)
    if (!last) return components
    after = last.componentNo
    for (const { componentNo, isListed } of page) {
      if (!isListed && (await deleteComponent(sweeping, componentNo))) components++
    }
    await pause(sweeping)
  }
}

/** Returns false if a package list contains the package again. The package is still on hold, so it will be compared again. */
async function deleteComponent(sweeping: Sweeping, componentNo: number): Promise<boolean> {
  for (;;) {
    const step = await sweeping.tx(async (within): Promise<'more' | 'done' | 'kept'> => {
      if (await store.isListed(within, componentNo)) return 'kept'
      await forgetOpen(within, componentNo)
      if (await deleteFindings(within, componentNo)) return 'more'
      if ((await store.deleteTies(within, componentNo, rowsAtOnce)) > 0) return 'more'
      await store.deleteComponent(within, componentNo)
      return 'done'
    })
    if (step !== 'more') return step === 'done'
    await pause(sweeping)
  }
}

/**
 * Deletes some findings of a package and reduces the bytes that organizations are charged for the findings. Returns false if
 * there were no findings.
 */
async function deleteFindings(tx: Tx, componentNo: number): Promise<boolean> {
  const deleted = await store.deleteFindings(tx, componentNo, rowsAtOnce)
  for (const [organization, found] of Map.groupBy(deleted, (one) => one.organization)) {
    const charged = found.reduce((sum, one) => sum + one.charged, 0)
    if (charged > 0) await countBytes(tx, organization, -charged)
  }
  return deleted.length > 0
}

/**
 * Deletes signed statements on deleted images. Only servers of an earlier version leave such statements behind. Returns the
 * number of deleted rows.
 */
export async function sweepSigned(sweeping: Sweeping): Promise<number> {
  const { app, tx } = sweeping
  let deleted = 0
  for (let after = { repoUid: '', digest: '' }; ; ) {
    const image = await signed.nextSigned(app.db, after)
    if (!image) return deleted
    after = image
    for (let more = !image.isThere; more; ) {
      const gone = await tx(async (within) => {
        const gone = await signed.deleteSignedOfDeleted(within, image, rowsAtOnce)
        if (gone > 0) await countBytes(within, image.repoUid, -gone * bytesOfSigned)
        return gone
      })
      deleted += gone
      more = gone === rowsAtOnce
      await pause(sweeping)
    }
    await pause(sweeping)
  }
}

/** Yields to other work, and checks the lease. */
async function pause({ check }: Sweeping): Promise<void> {
  await setImmediate()
  check()
}
