import type { Domain } from '#domain.ts'
import { AccessService } from '#gen/pinfold/control/iam/v1/access_pb.ts'
import { AccessRequestsService } from '#gen/pinfold/control/iam/v1/access_requests_pb.ts'
import { ClaimChecksService } from '#gen/pinfold/control/iam/v1/claim_checks_pb.ts'
import { EmailDomainsService } from '#gen/pinfold/control/iam/v1/email_domains_pb.ts'
import { PendingBindingsService } from '#gen/pinfold/control/iam/v1/pending_bindings_pb.ts'
import { ProviderDiscoveryService } from '#gen/pinfold/control/iam/v1/provider_discovery_pb.ts'
import { PushTokensService } from '#gen/pinfold/control/iam/v1/push_tokens_pb.ts'
import { SessionsService } from '#gen/pinfold/control/iam/v1/sessions_pb.ts'
import { QuotasService } from '#gen/pinfold/control/quotas/v1/quotas_pb.ts'
import { Identities as EventsIdentities } from '#gen/pinfold/events/v1/identities_pb.ts'
import { GroupAccountAssociations } from '#gen/pinfold/iam/v1/account_associations_pb.ts'
import { ExternalGroupRoleMappings } from '#gen/pinfold/iam/v1/external_group_role_mappings_pb.ts'
import { GroupInvites } from '#gen/pinfold/iam/v1/group_invites_pb.ts'
import { Groups } from '#gen/pinfold/iam/v1/groups_pb.ts'
import { Identities } from '#gen/pinfold/iam/v1/identities_pb.ts'
import { IdentityProviders } from '#gen/pinfold/iam/v1/identity_providers_pb.ts'
import { RoleBindings } from '#gen/pinfold/iam/v1/role_bindings_pb.ts'
import { Roles } from '#gen/pinfold/iam/v1/roles_pb.ts'
import { Terms } from '#gen/pinfold/iam/v1/terms_pb.ts'
import { AccountAssociationsService } from '#gen/pinfold/iam/v2/account_associations_pb.ts'
import { ExternalGroupRoleMappingsService } from '#gen/pinfold/iam/v2/external_group_role_mappings_pb.ts'
import { GroupInvitesService } from '#gen/pinfold/iam/v2/group_invites_pb.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { IdentitiesService } from '#gen/pinfold/iam/v2/identities_pb.ts'
import { IdentityProvidersService } from '#gen/pinfold/iam/v2/identity_providers_pb.ts'
import { RoleBindingsService } from '#gen/pinfold/iam/v2/role_bindings_pb.ts'
import { RolesService } from '#gen/pinfold/iam/v2/roles_pb.ts'
import { TermsService } from '#gen/pinfold/iam/v2/terms_pb.ts'
import { accessRequestEvents, accessRequests } from './access-requests/access-requests.control.ts'
import { groupAccessV1 } from './access-requests/access-requests.v1.ts'
import { groupAccess } from './access-requests/access-requests.v2.ts'
import { accountAssociationEventsV1, accountAssociationsV1 } from './accounts/account-associations.v1.ts'
import { accountAssociationEvents, accountAssociations } from './accounts/account-associations.v2.ts'
import { emailDomainEvents, emailDomains } from './email-domains/email-domains.control.ts'
import { access } from './explanations/explanations.control.ts'
import { groupEventsV1, groupsV1 } from './groups/groups.v1.ts'
import { groupEvents, groups } from './groups/groups.v2.ts'
import { organizationQuotas, quotaEvents } from './groups/quotas.control.ts'
import { iamHooks } from './iam.hooks.ts'
import {
  endUntrustedSessions,
  readKeys,
  rotateKeys,
  sweepPushTokensJob,
  sweepRequestIds,
  sweepSessionsJob,
  writeLastSeen,
} from './iam.job.ts'
import { claimChecks } from './identities/claim-checks.control.ts'
import { eventsIdentitiesV1 } from './identities/events-identities.v1.ts'
import { identitiesV1, identityEventsV1 } from './identities/identities.v1.ts'
import { identities, identityEvents } from './identities/identities.v2.ts'
import {
  externalGroupRoleMappingsV1,
  groupMappingEventsV1,
} from './identity-providers/external-group-role-mappings.v1.ts'
import { externalGroupRoleMappings, groupMappingEvents } from './identity-providers/external-group-role-mappings.v2.ts'
import { identityProviderEventsV1, identityProvidersV1 } from './identity-providers/identity-providers.v1.ts'
import { identityProviderEvents, identityProviders } from './identity-providers/identity-providers.v2.ts'
import { providerDiscovery } from './identity-providers/provider-discovery.control.ts'
import { groupInviteEventsV1, groupInvitesV1 } from './invites/group-invites.v1.ts'
import { groupInviteEvents, groupInvites } from './invites/group-invites.v2.ts'
import { openIam } from './open-parts.ts'
import { pushTokenEvents, pushTokens } from './push-tokens/push-tokens.control.ts'
import { resources } from './resources.ts'
import { pendingBindings } from './roles/pending-bindings.control.ts'
import { roleBindingEventsV1, roleBindingsV1 } from './roles/role-bindings.v1.ts'
import { roleBindingEvents, roleBindings } from './roles/role-bindings.v2.ts'
import { roleEventsV1, rolesV1 } from './roles/roles.v1.ts'
import { roleEvents, roles } from './roles/roles.v2.ts'
import { scimEvents } from './scim/scim.control.ts'
import { sessionEvents, sessions } from './sessions/sessions.control.ts'
import { termsEventsV1, termsV1 } from './terms/terms.v1.ts'
import { terms, termsEvents } from './terms/terms.v2.ts'

export const iam: Domain = {
  parts: openIam,
  services: [
    { desc: GroupsService, handlers: { ...groups, ...groupAccess } },
    { desc: AccessRequestsService, handlers: accessRequests },
    { desc: AccessService, handlers: access },
    { desc: IdentitiesService, handlers: identities },
    { desc: ClaimChecksService, handlers: claimChecks },
    { desc: RolesService, handlers: roles },
    { desc: RoleBindingsService, handlers: roleBindings },
    { desc: PendingBindingsService, handlers: pendingBindings },
    { desc: IdentityProvidersService, handlers: identityProviders },
    { desc: ProviderDiscoveryService, handlers: providerDiscovery },
    { desc: EmailDomainsService, handlers: emailDomains },
    { desc: ExternalGroupRoleMappingsService, handlers: externalGroupRoleMappings },
    { desc: GroupInvitesService, handlers: groupInvites },
    { desc: AccountAssociationsService, handlers: accountAssociations },
    { desc: TermsService, handlers: terms },
    { desc: SessionsService, handlers: sessions },
    { desc: PushTokensService, handlers: pushTokens },
    { desc: QuotasService, handlers: organizationQuotas },
    { desc: Groups, handlers: { ...groupsV1, ...groupAccessV1 } },
    { desc: Identities, handlers: identitiesV1 },
    { desc: EventsIdentities, handlers: eventsIdentitiesV1 },
    { desc: Roles, handlers: rolesV1 },
    { desc: RoleBindings, handlers: roleBindingsV1 },
    { desc: IdentityProviders, handlers: identityProvidersV1 },
    { desc: ExternalGroupRoleMappings, handlers: externalGroupRoleMappingsV1 },
    { desc: GroupInvites, handlers: groupInvitesV1 },
    { desc: GroupAccountAssociations, handlers: accountAssociationsV1 },
    { desc: Terms, handlers: termsV1 },
  ],
  eventBodies: [
    ...groupEvents,
    ...accessRequestEvents,
    ...identityEvents,
    ...roleEvents,
    ...roleBindingEvents,
    ...identityProviderEvents,
    ...groupMappingEvents,
    ...groupInviteEvents,
    ...accountAssociationEvents,
    ...termsEvents,
    ...quotaEvents,
    ...sessionEvents,
    ...pushTokenEvents,
    ...scimEvents,
    ...emailDomainEvents,
    ...groupEventsV1,
    ...roleEventsV1,
    ...identityEventsV1,
    ...roleBindingEventsV1,
    ...identityProviderEventsV1,
    ...groupMappingEventsV1,
    ...groupInviteEventsV1,
    ...accountAssociationEventsV1,
    ...termsEventsV1,
  ],
  resources,
  hooks: iamHooks,
  jobs: [
    writeLastSeen,
    readKeys,
    rotateKeys,
    sweepSessionsJob,
    sweepPushTokensJob,
    sweepRequestIds,
    endUntrustedSessions,
  ],
}
