import type { By } from '#caller.ts'
import type { Reader, Tx } from '#db/sql.ts'
import type { Cause } from '#lib/cause.ts'
import type { QuotaName } from './groups/quotas.model.ts'
import type { Identity } from './identities/identities.model.ts'

/** An identity that is being deleted. Events about its groups have the cause `toGroups`. */
export type IdentityDeletion = { identity: Identity; cause: Cause; toGroups: Cause }

/** Hooks that run when something of this domain changes. */
export type IamHooks = {
  /** The caller created an organization. */
  organizationCreated(tx: Tx, by: By, uid: string): Promise<void>
  /**
   * A group with nothing below it is being deleted. Removes the rows that the `groupDeletion` of their resource deletes with it.
   */
  groupDeleting(tx: Tx, uid: string): Promise<void>
  /** An identity is being deleted. Removes its rows, or throws if the identity must not be deleted. */
  identityDeleting(tx: Tx, deletion: IdentityDeletion): Promise<void>
  /** A session was ended by a caller outside of it. Somebody else may have used it. */
  sessionEnded(tx: Tx, cause: Cause, uid: string): Promise<void>
  /** An identity provider is being deleted. */
  providerDeleting(tx: Tx, uid: string): Promise<void>
  /** Returns the reason why a role is still needed. Undefined if it is not. */
  roleInUse(reader: Reader, uid: string, now: string): Promise<string | undefined>
  /** Counts what an organization uses of its quotas. */
  quotaUse(reader: Reader, organization: string): Promise<Partial<Record<QuotaName, number>>>
  /** Throws NOT_FOUND unless the server has each of these repositories. */
  requireRepos(reader: Reader, uids: readonly string[]): Promise<void>
}
