import type { BatchWriter } from '#lib/batches/batch-writer.ts'
import type { Cause } from '#lib/cause.ts'
import { kindOf } from '#lib/events/event-body.ts'

/** How the client named the repository, with the view that it read it in. `subdomain` is empty for the registry's own host. */
export type Origin = { host: string; subdomain: string; repository: string; view?: string }

/** The repo: its uid, the uid of its group, and its path in names. */
export type EventRepo = { uid: string; group: string; path: string }

export type RegistryError = { status: number; code: string; message: string }

type Content = { type: 'manifest' | 'blob'; digest: string; tag?: string; mediaType?: string; error?: RegistryError }
export type Pushed = Content & { previousDigest?: string }
/** What a rule said of a pull: its uid and name, and whether it only observes. `failed`: it could not be applied. */
export type Judgement = { uid: string; name: string; enforced: boolean; denied: boolean; failed?: boolean }
export type Pulled = Content & { method: 'GET' | 'HEAD'; judged?: readonly Judgement[] | undefined }

/** What was pushed or pulled where, and by whom. */
export type Transfer<What> = { cause: Cause; repo: EventRepo; origin: Origin; what: What }

/** What was deleted. */
export type Deleted = { repo: EventRepo } & Pick<Content, 'type' | 'digest'>

export const aContentDeletion = kindOf<Deleted>('content deletion')
export const aPush = kindOf<Transfer<Pushed>>('push')
export const aPull = kindOf<Transfer<Pulled>>('pull')

/** Events that belong to no transaction. Noting one costs next to nothing; a duty writes them together, a little later; `flush` answers with how many. */
export type RegistryEvents = BatchWriter & {
  /** Is written only where a subscription or a stream wants it. */
  pulled(cause: Cause, repo: EventRepo, origin: Origin, what: Pulled): void
  /** A push that was refused; the same. */
  refused(cause: Cause, repo: EventRepo, origin: Origin, what: Pushed): void
}

/** The receivers of one type of event. */
export type Audience = {
  /** True if certainly nobody wants the events of the group. False if somebody does, or if it is unknown. */
  isEmpty(group: string): boolean
  /** Whether a subscription or a stream that is open now wants the events of the group. */
  includes(group: string): Promise<boolean>
}
