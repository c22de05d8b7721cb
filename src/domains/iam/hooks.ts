import type { By } from '#caller.ts'
import type { Reader, Tx } from '#db/sql.ts'
import type { Cause } from '#lib/cause.ts'
import type { QuotaName } from './groups/quotas.model.ts'
import type { Identity } from './identities/identities.model.ts'

/** Deletion of an identity. Events of the groups in which the identity had bindings have the cause `toGroups`. */
export type IdentityDeletion = { identity: Identity; cause: Cause; toGroups: Cause }

/** Hooks of this domain, called in the transaction of a change. */
export type IamHooks = {
  /** Called when an organization was created. */
  organizationCreated(tx: Tx, by: By, uid: string): Promise<void>
  /**
   * Called when an empty group is deleted. Implementations delete the rows that belong to the group, as `groupDeletion` of their
   * resources declares.
   */
  groupDeleting(tx: Tx, uid: string): Promise<void>
  /**
   * Called when an identity is deleted. Implementations delete the rows of the identity. They throw if the identity must not be
   * deleted.
   */
  identityDeleting(tx: Tx, deletion: IdentityDeletion): Promise<void>
  /**
   * Called when a session was ended from another session, or because its refresh token was used twice. Somebody else may have
   * used the session.
   */
  sessionEnded(tx: Tx, cause: Cause, uid: string): Promise<void>
  /** Called when an identity provider is deleted. */
  providerDeleting(tx: Tx, uid: string): Promise<void>
  /** Returns the reason why a role cannot be deleted. Undefined if it can. */
  roleInUse(reader: Reader, uid: string, now: string): Promise<string | undefined>
  /** Counts the resources of an organization that count against its quotas. */
  quotaUse(reader: Reader, organization: string): Promise<Partial<Record<QuotaName, number>>>
  /** Throws NOT_FOUND if one of the repositories does not exist. */
  requireRepos(reader: Reader, uids: readonly string[]): Promise<void>
}
