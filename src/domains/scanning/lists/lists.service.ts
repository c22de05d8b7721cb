// Stores the packages of images as rows. Each package is compared once for all images that contain it.
import { setImmediate } from 'node:timers/promises'
import type { App } from '#app.ts'
import { ecosystemOf } from '#contents/ecosystems.ts'
import { type Distribution, isOfDistribution, type Package } from '#contents/packages.ts'
import { archWithModule } from '#contents/rpm-module.ts'
import type { Tx } from '#db/sql.ts'
import { countBytes } from '#domains/registry/blobs/usage.service.ts'
import { chunks } from '#lib/chunks.ts'
import { queueMatches } from '../queue/queue.store.ts'
import { type Component, keyOf, type ListKey, listStates } from './lists.model.ts'
import * as store from './lists.store.ts'

/**
 * A prepared package list. `completeList` completes the list in the transaction that assigns it to an image. `bytes` is the size
 * of the list's rows.
 */
export type PreparedList = { listNo: number; isNew: boolean; bytes: number }

/** Rows that one transaction of the preparation writes. The number is small, so that other writers do not wait long. */
const perSlice = 200

/** Writes the packages of a list. Does nothing if the list exists. No report uses the list until it is completed. */
export async function prepareList(
  { db, clock }: Pick<App, 'db' | 'clock'>,
  key: ListKey,
  packages: readonly Package[],
): Promise<PreparedList> {
  const known = await store.findList(db, key)
  if (known?.state === listStates.complete) return { listNo: known.listNo, isNew: false, bytes: 0 }
  const distinct = new Set(packages.map((one) => keyOf(componentOf(one, key.distribution)))).size
  const ecosystems = [...new Set(packages.map(({ kind }) => ecosystemOf(kind, key.distribution)))].sort()
  const opened =
    known ??
    (await db.tx((tx) => {
      const ecosystem = ecosystemOf(packages.find(isOfDistribution)?.kind ?? 'apk', key.distribution)
      return store.openList(tx, key, { ecosystem, ecosystems, packages: distinct, now: clock().toISOString() })
    }))
  const owners = ownersOf(packages)
  for (const slice of chunks(packages, perSlice)) {
    const entries = slice.map((one) => ({
      component: componentOf(one, key.distribution),
      owner: one.owner && owners.get(`${one.owner.name} ${one.owner.version}`),
      locations: one.locations ? JSON.stringify(one.locations) : '',
    }))
    await db.tx(async (tx) => {
      const owned = entries.flatMap(({ owner }) => (owner ? [componentOf(owner, key.distribution)] : []))
      const numbers = await store.ensureComponents(tx, [...entries.map(({ component }) => component), ...owned])
      const numberOf = (one: Component) => numbers.get(keyOf(one))!
      const rows = entries.map(({ component, owner, locations }) => ({
        componentNo: numberOf(component),
        ownerNo: owner ? numberOf(componentOf(owner, key.distribution)) : 0,
        locations,
      }))
      await store.insertEntries(tx, opened.listNo, rows)
    })
    await setImmediate()
  }
  return { listNo: opened.listNo, isNew: true, bytes: packages.reduce((sum, one) => sum + estimateBytes(one), 0) }
}

/** Approximate size of a package: its text in the image, and its rows with their indexes. */
function estimateBytes({ name, version, origin, originVersion, arch, locations = [] }: Package): number {
  const words = [name, version, origin, originVersion, arch, ...locations]
  return 200 + 2 * words.reduce((sum, word) => sum + Buffer.byteLength(word), 0)
}

/**
 * Completes a list, in the transaction that assigns the list to an image, and queues it for comparison. The organization of the
 * first image is charged even if its quota is used up, because the contents of the image must be known.
 */
export async function completeList(
  tx: Tx,
  { listNo, isNew, bytes }: PreparedList,
  organization: string,
  now: string,
): Promise<void> {
  if (isNew && (await store.completeList(tx, listNo))) {
    await store.queueNames(tx, listNo, organization)
    await store.setPayer(tx, listNo, { payer: organization, bytes, charged: bytes })
    await countBytes(tx, organization, bytes)
    return queueMatches(tx, [{ kind: 'list', organization, item: String(listNo) }], now)
  }
  // The list was complete before, unless the cleanup deleted the list a moment ago.
  const list = await store.findListByNo(tx, listNo)
  if (list?.state !== listStates.complete) throw new Error(`package list ${listNo} was deleted in the meantime`)
  await store.queueNames(tx, listNo, organization)
}

/**
 * Minimum change of a charge in bytes. Smaller changes are not stored, because each new record changes the findings of many
 * lists.
 */
export const leastCharged = 64 * 1024

/**
 * A list with the organization that is charged for it. `added` is the change of the charge in bytes, negative for a reduction.
 */
export type Charge = store.Payer & { listNo: number; added: number }

/**
 * Charges organizations for the shared findings of lists. Findings from an organization's own advisories are charged to that
 * organization instead.
 */
export async function chargeFindings(tx: Tx, charges: readonly Charge[]): Promise<void> {
  const due = charges.filter(({ payer, added }) => payer !== '' && Math.abs(added) >= leastCharged)
  for (const { listNo, added, ...paid } of due) {
    await store.setPayer(tx, listNo, { ...paid, charged: paid.charged + added })
  }
  for (const [payer, all] of Map.groupBy(due, (one) => one.payer)) {
    const added = all.reduce((sum, one) => sum + one.added, 0)
    await countBytes(tx, payer, added)
  }
}

/** Charges another organization for a list, or no organization. */
export async function passOn(tx: Tx, listNo: number, payer: string): Promise<void> {
  const paid = await store.findPayer(tx, listNo)
  if (!paid || paid.payer === '' || paid.payer === payer) return
  await store.setPayer(tx, listNo, payer === '' ? { payer, bytes: 0, charged: 0 } : { ...paid, payer })
  await countBytes(tx, paid.payer, -paid.charged)
  if (payer !== '') await countBytes(tx, payer, paid.charged)
}

function componentOf(one: Package, distribution: Distribution): Component {
  const { kind, name, version, origin, originVersion, module } = one
  const arch = archWithModule(one.arch, module)
  return { kind, ecosystem: ecosystemOf(kind, distribution), name, version, origin, originVersion, arch }
}

function ownersOf(packages: readonly Package[]): Map<string, Package> {
  const ofDistribution = packages.filter(isOfDistribution)
  return new Map(ofDistribution.map((one) => [`${one.name} ${one.version}`, one]))
}
