import type { Service } from '#app.ts'
import { AccountAssociationsService } from '#gen/pinfold/iam/v2/account_associations_pb.ts'
import { ExternalGroupRoleMappingsService } from '#gen/pinfold/iam/v2/external_group_role_mappings_pb.ts'
import { GroupInvitesService } from '#gen/pinfold/iam/v2/group_invites_pb.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { IdentitiesService } from '#gen/pinfold/iam/v2/identities_pb.ts'
import { IdentityProvidersService } from '#gen/pinfold/iam/v2/identity_providers_pb.ts'
import { RoleBindingsService } from '#gen/pinfold/iam/v2/role_bindings_pb.ts'
import { RolesService } from '#gen/pinfold/iam/v2/roles_pb.ts'
import { TermsService } from '#gen/pinfold/iam/v2/terms_pb.ts'
import type { EventBody } from '#lib/events/event-body.ts'
import { accountAssociationEvents, accountAssociations } from './accounts/account-associations.v2.ts'
import { groupEvents, groups } from './groups/groups.v2.ts'
import { identities, identityEvents } from './identities/identities.v2.ts'
import { externalGroupRoleMappings, groupMappingEvents } from './identity-providers/external-group-role-mappings.v2.ts'
import { identityProviderEvents, identityProviders } from './identity-providers/identity-providers.v2.ts'
import { groupInviteEvents, groupInvites } from './invites/group-invites.v2.ts'
import { roleBindingEvents, roleBindings } from './roles/role-bindings.v2.ts'
import { roleEvents, roles } from './roles/roles.v2.ts'
import { terms, termsEvents } from './terms/terms.v2.ts'

export const services: readonly Service[] = [
  { desc: GroupsService, handlers: groups },
  { desc: IdentitiesService, handlers: identities },
  { desc: RolesService, handlers: roles },
  { desc: RoleBindingsService, handlers: roleBindings },
  { desc: IdentityProvidersService, handlers: identityProviders },
  { desc: ExternalGroupRoleMappingsService, handlers: externalGroupRoleMappings },
  { desc: GroupInvitesService, handlers: groupInvites },
  { desc: AccountAssociationsService, handlers: accountAssociations },
  { desc: TermsService, handlers: terms },
]

export const eventBodies: readonly EventBody[] = [
  ...groupEvents,
  ...identityEvents,
  ...roleEvents,
  ...roleBindingEvents,
  ...identityProviderEvents,
  ...groupMappingEvents,
  ...groupInviteEvents,
  ...accountAssociationEvents,
  ...termsEvents,
]
