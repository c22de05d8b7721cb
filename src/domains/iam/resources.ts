import type { Resource } from '#lib/resource.ts'
import { accessRequestType } from './access-requests/access-requests.model.ts'
import { accountAssociationType } from './accounts/account-associations.model.ts'
import { emailDomainType } from './email-domains/email-domains.model.ts'
import { groupType } from './groups/groups.model.ts'
import { identityType } from './identities/identities.model.ts'
import { groupMappingType } from './identity-providers/external-group-role-mappings.model.ts'
import { identityProviderType } from './identity-providers/identity-providers.model.ts'
import { groupInviteType } from './invites/group-invites.model.ts'
import { pushTokenType } from './push-tokens/push-tokens.model.ts'
import { roleBindingType } from './roles/role-bindings.model.ts'
import { roleType } from './roles/roles.model.ts'
import { scimGroupType } from './scim/scim-groups.model.ts'
import { scimUserType } from './scim/scim-users.model.ts'
import { sessionType } from './sessions/sessions.model.ts'
import { termsAcceptanceType } from './terms/terms.model.ts'

export const resources: readonly Resource[] = [
  {
    type: groupType,
    table: 'groups',
    kinds: ['groups'],
    uid: 'node',
    groupDeletion: 'blocks',
    clears: { grants: ['delete'], paths: ['update', 'delete'], pushTokens: ['delete'] },
  },
  {
    type: identityType,
    table: 'identities',
    kinds: ['identities'],
    uid: 'node',
    groupDeletion: 'blocks',
    // An update does not clear the caches, since it may only record the time of last use.
    clears: { grants: ['delete'], pushTokens: ['delete'] },
  },
  {
    type: roleType,
    table: 'roles',
    kinds: ['roles'],
    uid: 'node',
    groupDeletion: 'blocks',
    clears: { grants: ['update', 'delete'], sessions: ['update', 'delete'] },
  },
  {
    type: roleBindingType,
    table: 'role_bindings',
    kinds: ['role_bindings'],
    uid: 'node',
    groupDeletion: 'goes',
    clears: { grants: ['insert', 'update', 'delete'] },
  },
  {
    type: identityProviderType,
    table: 'identity_providers',
    kinds: ['identity_providers'],
    uid: 'node',
    groupDeletion: 'blocks',
    // An update may have disabled SCIM for the provider, which ends roles from provisioned groups.
    clears: { sessions: ['update'] },
  },
  {
    type: groupMappingType,
    table: 'external_group_role_mappings',
    kinds: ['external_group_role_mappings'],
    uid: 'node',
    groupDeletion: 'apart',
    // New and deleted group mappings change the roles that sessions get from provisioned groups.
    clears: { sessions: ['insert', 'delete'] },
  },
  { type: groupInviteType, table: 'group_invites', kinds: ['group_invites'], uid: 'node', groupDeletion: 'goes' },
  {
    type: accountAssociationType,
    table: 'account_associations',
    kinds: ['account_associations'],
    uid: 'group',
    groupDeletion: 'blocks',
  },
  // Sessions that are limited to an organization end with its identity provider. Providers block the deletion of an organization.
  {
    type: sessionType,
    table: 'sessions',
    kinds: [],
    uid: 'none',
    groupDeletion: 'apart',
    clears: { sessions: ['delete'] },
  },
  {
    type: pushTokenType,
    table: 'push_tokens',
    kinds: [],
    uid: 'none',
    groupDeletion: 'goes',
    clears: { pushTokens: ['delete'] },
  },
  { type: scimUserType, table: 'scim_users', kinds: [], uid: 'none', groupDeletion: 'apart' },
  // A change of the members is also an update of the group.
  {
    type: scimGroupType,
    table: 'scim_groups',
    kinds: [],
    uid: 'none',
    groupDeletion: 'apart',
    clears: { sessions: ['insert', 'update', 'delete'] },
  },
  { type: emailDomainType, table: 'email_domains', kinds: [], uid: 'none', groupDeletion: 'goes' },
  { type: accessRequestType, table: 'access_requests', kinds: [], uid: 'none', groupDeletion: 'goes' },
  { type: termsAcceptanceType, table: 'terms_acceptances', kinds: [], uid: 'none', groupDeletion: 'goes' },
]
