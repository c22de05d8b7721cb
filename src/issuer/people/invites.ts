// Offers of invites, so that a person can agree before the sign-in.
import type { App } from '#app.ts'
import { findGroupName } from '#domains/iam/groups/groups.service.ts'
import { findOffer } from '#domains/iam/invites/registration.service.ts'
import { rootOf } from '#lib/uid.ts'

/** Names of the organization, of its group, and of the role. `role` is empty if the role was deleted. */
export type Offered = { organization: string; group: string; role: string }

/** Offer of an invite code. Undefined if nobody can ever join with it. */
export async function offerOf(app: App, code: string): Promise<Offered | undefined> {
  const offer = await findOffer(app.db, code)
  if (!offer) return undefined
  const [organization = '', group = ''] = await Promise.all(
    [rootOf(offer.group), offer.group].map((uid) => findGroupName(app.db, uid)),
  )
  return { organization, group, role: offer.role }
}
