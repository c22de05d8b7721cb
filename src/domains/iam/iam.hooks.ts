// Hooks of this domain that its own folders implement.
import type { App } from '#app.ts'
import type { DomainHooks } from '#hooks.ts'
import { parentOf, top } from '#lib/uid.ts'
import { withdrawRequests } from './access-requests/access-requests.service.ts'
import { resourceNames } from './explanations/resource-names.store.ts'
import { isRoleMapped } from './identity-providers/external-group-role-mappings.store.ts'
import { isDefaultRole } from './identity-providers/identity-providers.store.ts'
import { deleteInvitesOfGroup, isRoleOffered } from './invites/group-invites.store.ts'
import { endPushTokensOfSession } from './push-tokens/push-token-use.service.ts'
import { bindOwner, unbindGroup, unbindIdentity } from './roles/owners.service.ts'
import { dropScimUsers } from './scim/scim-users.service.ts'
import { endAllOfPerson } from './sessions/sessions.service.ts'
import { forgetPerson } from './sessions/sign-ins.store.ts'
import { deleteAcceptances } from './terms/terms.store.ts'

export const iamHooks = (app: App): DomainHooks => ({
  resourceNames,

  async organizationCreated(tx, by, uid) {
    if (!by.caller.operator) await bindOwner(tx, by, uid)
  },

  async groupDeleting(tx, uid) {
    await unbindGroup(tx, uid)
    await deleteInvitesOfGroup(tx, uid)
    await deleteAcceptances(tx, uid)
  },

  async identityDeleting(tx, { identity: { uid }, cause, toGroups }) {
    await unbindIdentity(tx, { app, cause: toGroups }, uid)
    if (parentOf(uid) !== top) return
    // A person has the same uid after a deletion and a new sign-in. So remaining rows would belong to the new account.
    await endAllOfPerson(tx, { app, cause }, uid, 'deleted')
    await forgetPerson(tx, uid)
    await withdrawRequests(tx, uid)
  },

  sessionEnded: (tx, cause, uid) => endPushTokensOfSession(tx, { app, cause }, uid),
  providerDeleting: dropScimUsers,

  async roleInUse(reader, uid, now) {
    // Expired invitations are ignored, since nobody can accept them.
    if (await isRoleOffered(reader, uid, now)) return 'an invitation still offers the role; delete the invitation first'
    if (await isDefaultRole(reader, uid))
      return 'an identity provider still grants the role to new users; change its default role first'
    return (await isRoleMapped(reader, uid))
      ? 'an external group is still mapped to the role; delete the mapping first'
      : undefined
  },
})
