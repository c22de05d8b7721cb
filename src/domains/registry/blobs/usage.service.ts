// What organisations store, and whether there is room for more.
import type { Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { limitsOf, type QuotaLimits, requireRoom } from '#domains/iam/groups/limits.service.ts'
import { rootOf } from '#lib/uid.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import type { Usage } from './blobs.model.ts'
import * as store from './usage.store.ts'

export { bytesOfSigned } from './blobs.model.ts'

export async function usageOf(reader: Reader, organization: string): Promise<Usage> {
  return store.usageOf(reader, organization)
}

/**
 * Throws RESOURCE_EXHAUSTED when the organisation has no room for the bytes that this transaction has added. What adds
 * none always fits. Only where there is a limit is it compared with the sum, for which transactions of one organisation
 * wait for each other. `known` are its limits, where the request has read them.
 */
export async function requireBytes(
  tx: Tx,
  work: Pick<Work, 'app'>,
  { uid }: Pick<RepoRef, 'uid'>,
  added: number,
  known?: QuotaLimits,
): Promise<void> {
  if (added <= 0) return
  const limits = known ?? (await limitsOf(tx, work, rootOf(uid)))
  if (limits.bytes === Number.POSITIVE_INFINITY) return
  await store.lockUsage(tx, rootOf(uid))
  const { bytes, uploadBytes } = await store.usageOf(tx, rootOf(uid))
  requireRoom(limits, 'bytes', bytes + uploadBytes - added, added)
}

/**
 * Counts what is kept for an organisation besides the content of its repos. Throws RESOURCE_EXHAUSTED when it has no room
 * for it. `uid` is of the organisation, or of anything in it.
 */
export async function charge(tx: Tx, work: Pick<Work, 'app'>, uid: string, bytes: number): Promise<void> {
  await store.addUsage(tx, rootOf(uid), { bytes })
  await requireBytes(tx, work, { uid }, bytes)
}

/** Counts it whether there is room or not: what it is about is there already. Nothing of an organisation that is deleted. */
export async function countBytes(tx: Tx, uid: string, bytes: number): Promise<void> {
  if (await store.hasUsage(tx, rootOf(uid))) await store.addUsage(tx, rootOf(uid), { bytes })
}

/** Whether the organisation stores no more than it may; what is over does not come of its own. */
export async function isWithinQuota(reader: Reader, work: Pick<Work, 'app'>, organization: string): Promise<boolean> {
  const limits = await limitsOf(reader, work, organization)
  if (limits.bytes === Number.POSITIVE_INFINITY) return true
  const { bytes, uploadBytes } = await store.usageOf(reader, organization)
  return bytes + uploadBytes <= limits.bytes
}

/** Counts it whether there is room or not, for an organisation that is there. */
export async function addBytes(tx: Tx, uid: string, bytes: number): Promise<void> {
  await store.addUsage(tx, rootOf(uid), { bytes })
}

/** The reverse, when it is not kept any more. */
export async function giveBack(tx: Tx, uid: string, bytes: number): Promise<void> {
  await store.addUsage(tx, rootOf(uid), { bytes: -bytes })
}

/** Counts a body while it comes. */
export type Meter = {
  organization: string
  /** Those of the organisation when it began. */
  limits: QuotaLimits
  /** Throws RESOURCE_EXHAUSTED when there is no room for `bytes` more. */
  take(bytes: number): void
  /** Once what came is stored, and counted there, or is gone. More calls do no harm. */
  end(): void
}

/**
 * Meters a body of `announced` bytes, as far as that is known, for the organisation of the repo. `known` are its limits,
 * where they were just read. All bodies that this server receives for the organisation count together. Only what is
 * stored is decided exactly; this keeps what cannot fit from being written to the disk.
 */
export async function meterOf(
  work: Pick<Work, 'app'>,
  { uid }: Pick<RepoRef, 'uid'>,
  announced: number,
  known?: QuotaLimits,
): Promise<Meter> {
  const { db, incoming } = work.app
  const organization = rootOf(uid)
  const limits = known ?? (await limitsOf(db, work, organization))
  if (limits.bytes === Number.POSITIVE_INFINITY) return { organization, limits, take() {}, end() {} }
  const usage = await store.usageOf(db, organization)
  const used = () => usage.bytes + usage.uploadBytes + (incoming.get(organization) ?? 0)
  requireRoom(limits, 'bytes', used(), announced)
  let taken = 0
  const count = (bytes: number): void => {
    const sum = (incoming.get(organization) ?? 0) + bytes
    if (sum === 0) incoming.delete(organization)
    else incoming.set(organization, sum)
  }
  const end = (): void => {
    count(-taken)
    taken = 0
  }
  return {
    organization,
    limits,
    take(bytes) {
      try {
        requireRoom(limits, 'bytes', used(), bytes)
      } catch (error) {
        // At once, since what is refused must not take the room of what is not.
        end()
        throw error
      }
      taken += bytes
      count(bytes)
    },
    end,
  }
}

export async function forgetUsage(tx: Tx, organization: string): Promise<void> {
  await store.deleteUsage(tx, organization)
}
