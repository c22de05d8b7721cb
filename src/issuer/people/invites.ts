// Invitations as shown to a person before the sign-in.
import type { App } from '#app.ts'
import { findGroupName } from '#domains/iam/groups/groups.service.ts'
import { findOffer } from '#domains/iam/invites/registration.service.ts'
import { rootOf } from '#lib/uid.ts'

/** Names of the organization, group and role of an invitation. `role` is empty if the role was deleted. */
export type Offered = { organization: string; group: string; role: string }

/** Organization, group and role of an invite code. Undefined if the code is invalid for good. */
export async function offerOf(app: App, code: string): Promise<Offered | undefined> {
  const offer = await findOffer(app.db, code)
  if (!offer) return undefined
  const [organization = '', group = ''] = await Promise.all(
    [rootOf(offer.group), offer.group].map((uid) => findGroupName(app.db, uid)),
  )
  return { organization, group, role: offer.role }
}
