import type { BatchWriter } from '#lib/batches/batch-writer.ts'
import type { Cause } from '#lib/cause.ts'
import { kindOf } from '#lib/events/event-body.ts'

/** Repository as named by the client, with the view of the request. `subdomain` is empty for the registry's own host. */
export type Origin = { host: string; subdomain: string; repository: string; view?: string }

/** Repository of an event: its uid, the uid of its group, and its path. */
export type EventRepo = { uid: string; group: string; path: string }

export type RegistryError = { status: number; code: string; message: string }

type Content = { type: 'manifest' | 'blob'; digest: string; tag?: string; mediaType?: string; error?: RegistryError }
export type Pushed = Content & { previousDigest?: string }
/**
 * Verdict of a rule on a pull: its uid and name, and whether it is enforced and denies. `failed` is true if it could not be
 * applied.
 */
export type Judgement = { uid: string; name: string; enforced: boolean; denied: boolean; failed?: boolean }
export type Pulled = Content & { method: 'GET' | 'HEAD'; judged?: readonly Judgement[] | undefined }

/** Push or pull with its repository, origin and cause. */
export type Transfer<What> = { cause: Cause; repo: EventRepo; origin: Origin; what: What }

/** Deleted manifest or blob of a repository. */
export type Deleted = { repo: EventRepo } & Pick<Content, 'type' | 'digest'>

export const toContentDeletionResource = kindOf<Deleted>('content deletion')
export const toPushResource = kindOf<Transfer<Pushed>>('push')
export const toPullResource = kindOf<Transfer<Pulled>>('pull')

/**
 * Events outside of transactions. Recording one is cheap. A background job writes them together, a little later. `flush` returns
 * their number.
 */
export type RegistryEvents = BatchWriter & {
  /** Records a pull. It is written only if a subscription or a stream wants it. */
  pulled(cause: Cause, repo: EventRepo, origin: Origin, what: Pulled): void
  /** Records a refused push, under the same condition. */
  refused(cause: Cause, repo: EventRepo, origin: Origin, what: Pushed): void
}

/** Receivers of one type of event. */
export type Audience = {
  /** True if it is certain that no receiver wants the events of the group. False if one does, or if it is unknown. */
  isEmpty(group: string): boolean
  /** True if a subscription or an open stream wants the events of the group. */
  includes(group: string): Promise<boolean>
}
