// Storage that organizations use, and their quotas.
import type { Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { limitsOf, type QuotaLimits, requireCapacity } from '#domains/iam/groups/limits.service.ts'
import { rootOf } from '#lib/uid.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import type { Usage } from './blobs.model.ts'
import * as store from './usage.store.ts'

export { bytesOfSigned } from './blobs.model.ts'

export async function usageOf(reader: Reader, organization: string): Promise<Usage> {
  return store.usageOf(reader, organization)
}

/**
 * Throws RESOURCE_EXHAUSTED if the bytes that this transaction added exceed the quota of the organization. Zero bytes always fit.
 * The total is compared only if the organization has a limit, since the comparison makes transactions of one organization wait
 * for each other. `known` are limits that the request has already read.
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
  requireCapacity(limits, 'bytes', bytes + uploadBytes - added, added)
}

/**
 * Counts data of an organization that is not content of its repositories. Throws RESOURCE_EXHAUSTED if the quota is reached.
 * `uid` is the uid of the organization or of any resource in it.
 */
export async function charge(tx: Tx, work: Pick<Work, 'app'>, uid: string, bytes: number): Promise<void> {
  await store.addUsage(tx, rootOf(uid), { bytes })
  await requireBytes(tx, work, { uid }, bytes)
}

/** Adds to the counted bytes of an organization without checking the quota. Does nothing for a deleted organization. */
export async function countBytes(tx: Tx, uid: string, bytes: number): Promise<void> {
  if (await store.hasUsage(tx, rootOf(uid))) await store.addUsage(tx, rootOf(uid), { bytes })
}

/** True if the organization stores no more than its quota allows. */
export async function isWithinQuota(reader: Reader, work: Pick<Work, 'app'>, organization: string): Promise<boolean> {
  const limits = await limitsOf(reader, work, organization)
  if (limits.bytes === Number.POSITIVE_INFINITY) return true
  const { bytes, uploadBytes } = await store.usageOf(reader, organization)
  return bytes + uploadBytes <= limits.bytes
}

/** Counts bytes of an existing organization without checking the quota. */
export async function addBytes(tx: Tx, uid: string, bytes: number): Promise<void> {
  await store.addUsage(tx, rootOf(uid), { bytes })
}

/** Subtracts bytes that are no longer stored. */
export async function giveBack(tx: Tx, uid: string, bytes: number): Promise<void> {
  await store.addUsage(tx, rootOf(uid), { bytes: -bytes })
}

/** Counts the bytes of a request body while it is received. */
export type Meter = {
  organization: string
  /** Limits of the organization at the beginning of the request. */
  limits: QuotaLimits
  /** Counts received bytes. Throws RESOURCE_EXHAUSTED if they exceed a quota. */
  take(bytes: number): void
  /** Stops counting the body, after it was stored or discarded. The database counts stored bytes. Can be called repeatedly. */
  end(): void
}

/**
 * Creates a meter for a request body to the organization of the repository. `announced` is the length of the body, or 0 if it is
 * unknown. `known` are the limits of the organization if they were just read. All bodies that this server receives for one
 * organization are added up. The meter only stops bodies that cannot fit; the exact check follows when content is stored.
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
  requireCapacity(limits, 'bytes', used(), announced)
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
        requireCapacity(limits, 'bytes', used(), bytes)
      } catch (error) {
        // Stops counting at once, so that a refused body does not use up the quota of other requests.
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
