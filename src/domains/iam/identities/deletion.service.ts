// What goes with an identity, by whichever door it is deleted.
import type { Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { aDeletion } from '#lib/events/event-body.ts'
import { parentOf, top } from '#lib/uid.ts'
import { withdrawRequests } from '../access-requests/access-requests.service.ts'
import { unbindIdentity } from '../groups/owners.service.ts'
import { end } from '../sessions/sessions.service.ts'
import { sessionsOfIdentity } from '../sessions/sessions.store.ts'
import { forgetPerson } from '../sessions/sign-ins.store.ts'
import type { Identity } from './identities.model.ts'
import { deleteIdentity } from './identities.store.ts'

type EventWork = Pick<Work, 'app' | 'cause'>

/**
 * Deletes an identity with its bindings, and a person with their sessions, and tells of each; `toGroups` is what the groups of the
 * bindings are told with. Throws FAILED_PRECONDITION for the last owner of an organisation.
 */
export async function takeAway(tx: Tx, work: EventWork, identity: Identity, toGroups: EventWork): Promise<void> {
  const { uid } = identity
  const parent = parentOf(uid)
  for (const binding of await unbindIdentity(tx, uid)) {
    const event = { subject: binding.uid, group: parentOf(binding.uid), resource: aDeletion({ uid: binding.uid }) }
    await emit(tx, toGroups, 'iam.rolebindings.deleted', event)
  }
  if (parent === top) await takeAwayPerson(tx, work, uid)
  await deleteIdentity(tx, identity)
  await emit(tx, work, 'iam.identity.deleted', { subject: uid, group: parent, resource: aDeletion({ uid }) })
}

const atOnce = 200

/** The uid of a person is always the same, so what is left of them would be theirs again. */
async function takeAwayPerson(tx: Tx, work: EventWork, uid: string): Promise<void> {
  for (;;) {
    const sessions = await sessionsOfIdentity(tx, uid, atOnce)
    for (const session of sessions) await end(tx, work, session, 'deleted')
    if (sessions.length < atOnce) break
  }
  await forgetPerson(tx, uid)
  await withdrawRequests(tx, uid)
}
