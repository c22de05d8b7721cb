import type { BatchWriter } from '#lib/batches/batch-writer.ts'
import type { Cause } from '#lib/cause.ts'
import { kindOf } from '#lib/events/event-body.ts'

/** Repository as the client named it, with the view of the request. `subdomain` is empty for the registry's own host. */
export type Origin = { host: string; subdomain: string; repository: string; view?: string }

/** Repository of an event: its uid, the uid of its group, and its path. */
export type EventRepo = { uid: string; group: string; path: string }

export type RegistryError = { status: number; code: string; message: string }

type Content = { type: 'manifest' | 'blob'; digest: string; tag?: string; mediaType?: string; error?: RegistryError }
export type Pushed = Content & { previousDigest?: string }
/**
 * Result of a policy for a pull: uid and name of the policy, and whether it is enforced and denies the pull. `failed` is true if
 * the policy could not be evaluated.
 */
export type PolicyVerdict = { uid: string; name: string; enforced: boolean; denied: boolean; failed?: boolean }
export type Pulled = Content & { method: 'GET' | 'HEAD'; judged?: readonly PolicyVerdict[] | undefined }

/** Push or pull with its repository, origin and cause. */
export type Transfer<What> = { cause: Cause; repo: EventRepo; origin: Origin; what: What }

/** Deleted manifest or blob of a repository. */
export type Deleted = { repo: EventRepo } & Pick<Content, 'type' | 'digest'>

export const toContentDeletionResource = kindOf<Deleted>('content deletion')
export const toPushResource = kindOf<Transfer<Pushed>>('push')
export const toPullResource = kindOf<Transfer<Pulled>>('pull')

/**
 * Collector of events that are written outside of transactions. Recording an event is cheap. A background job writes the events
 * together, a little later. `flush` writes them and returns their number.
 */
export type RegistryEvents = BatchWriter & {
  /** Records a pull. The event is written only if a subscription or a stream wants it. */
  pulled(cause: Cause, repo: EventRepo, origin: Origin, what: Pulled): void
  /** Records a refused push. The event is written only if a subscription or a stream wants it. */
  refused(cause: Cause, repo: EventRepo, origin: Origin, what: Pushed): void
}

/** Receivers of one type of event. */
export type Audience = {
  /**
   * True if it is certain that no receiver wants the events of the group. False if a receiver wants them, or if this is unknown.
   */
  isEmpty(group: string): boolean
  /** True if a subscription or an open stream wants the events of the group. */
  includes(group: string): Promise<boolean>
}
