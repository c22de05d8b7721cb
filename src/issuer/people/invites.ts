// Invitations as shown to a person before the sign-in.
import type { App } from '#app.ts'
import { findGroupName } from '#domains/iam/groups/groups.service.ts'
import { actorNames } from '#domains/iam/identities/actors.service.ts'
import { findOffer, type Offer } from '#domains/iam/invites/registration.service.ts'
import { lineage, rootOf } from '#lib/uid.ts'

/** Invitation with the names that its receiver sees. */
export type Offered = Pick<Offer, 'role' | 'email' | 'expirationTime' | 'isOnce'> & {
  /** Names of the organization and, below it, of the folders down to the group of the invitation. */
  path: readonly string[]
  organizationUid: string
  /** Name or email address of the person who invites. Empty if this identity was deleted. */
  inviter: string
  state: 'open' | 'expired' | 'withdrawn'
}

/** Invitation of a code or of the key of a link. Undefined if there is none. */
export async function offerOf(app: App, code: string): Promise<Offered | undefined> {
  const offer = await findOffer(app.db, code)
  if (!offer) return undefined
  const { group, createdBy, isValid, ...shown } = offer
  const uids = lineage(group).toReversed()
  const names = await Promise.all(uids.map((uid) => findGroupName(app.db, uid)))
  const inviter = createdBy === '' ? operatorText : ((await actorNames(app.db, [createdBy])).get(createdBy) ?? '')
  const isExpired = offer.expirationTime <= app.clock().toISOString()
  return {
    ...shown,
    path: names.map((name) => name ?? ''),
    organizationUid: rootOf(group),
    inviter,
    state: !isValid ? 'withdrawn' : isExpired ? 'expired' : 'open',
  }
}

const operatorText = 'The operator of this server'
