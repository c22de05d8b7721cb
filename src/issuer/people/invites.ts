// What an invite offers, so that a person can agree to it before they sign in.
import type { App } from '#app.ts'
import { findGroupName } from '#domains/iam/groups/groups.service.ts'
import { findOffer } from '#domains/iam/invites/registration.service.ts'
import { rootOf } from '#lib/uid.ts'

/** The names of the organisation, of the group in it, and of the role; `role` is empty when it is gone. */
export type Offered = { organization: string; group: string; role: string }

/** What the code of an invite offers; nothing for one that nobody can join with, now or later. */
export async function offerOf(app: App, code: string): Promise<Offered | undefined> {
  const offer = await findOffer(app.db, code)
  if (!offer) return undefined
  const [organization = '', group = ''] = await Promise.all(
    [rootOf(offer.group), offer.group].map((uid) => findGroupName(app.db, uid)),
  )
  return { organization, group, role: offer.role }
}
