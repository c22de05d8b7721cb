// One call of every method, in an order in which they work: the examples of the reference, and what agents are tried with.
// `$name` is the uid of what the call of that name answered, `$name.member` a member of the answer.

import type { Json } from '../support/pinfold.ts'
import { accessCalls } from './access-calls.ts'
import { foundCalls } from './found-calls.ts'
import { gateCalls } from './gate-calls.ts'
import { retentionCalls } from './retention-calls.ts'
import { signerCalls } from './signer-calls.ts'

/** The method without `pinfold.` and `platform.`; the request as JSON; under which name the answer is kept; who calls. */
export type Call = readonly [
  method: string,
  request: Json,
  name?: string | undefined,
  caller?: 'person' | 'outsider' | 'visitor' | 'newcomer' | 'newcomer1',
]

const claimMatch = { issuer: 'https://token.actions.example.com', subject: 'repo:acme/app:ref:refs/heads/main' }
const account = { issuer: '$issuer', subject: 'visitor' }
const oidc = { issuer: '$issuer', clientId: 'pinfold', clientSecret: 'the client secret' }
const amazon = { account: '123456789012' }
const run = '7c'.repeat(32)
const chart = { source: 'HELM_CHART_SOURCE_UNKNOWN', repo: 'https://charts.example.com', chart: 'app' }
const artifacts = [
  { ecosystem: 'ECOSYSTEM_PYTHON', name: 'flask', versions: [{ version: '3.0.0', sizeBytes: '102400' }] },
]
const advisory = (advisoryId: string) => ({
  advisoryId,
  author: 'security',
  artifactName: 'app',
  artifactType: 'apk',
  componentName: 'zlib',
  aliases: ['CVE-2024-1234'],
  events: [
    {
      createTime: '2026-01-02T03:04:05.000Z',
      author: 'security',
      reviewState: 'REVIEW_STATE_APPROVED',
      fixed: { fixedVersion: '1.3.1-r0' },
    },
  ],
})

const scanReport = JSON.stringify({
  SchemaVersion: 2,
  ArtifactName: 'app',
  Results: [{ Vulnerabilities: [{ VulnerabilityID: 'CVE-2026-1234', PkgName: 'flask', Severity: 'HIGH' }] }],
})
const sourceRun = { name: 'osv/PyPI', generation: '1' }
const sourceRecord = {
  id: 'PYSEC-2026-1',
  aliases: ['CVE-2026-1234'],
  summary: 'Something that should not be',
  affected: [
    {
      ecosystem: 'PyPI',
      name: 'flask',
      ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '3.0.1' }] }],
      state: 'affected',
    },
  ],
}

const advisory1 = {
  advisoryId: 'ACME-2026-0002',
  author: 'security',
  artifactName: 'worker',
  artifactType: 'apk',
  componentName: 'zlib',
  aliases: ['CVE-2024-4321'],
}

/** Calls that need a scanner, which the server does not have. */
export const absent: readonly string[] = [
  'registry.Registry/GetVulnReport',
  'registry.Vulnerabilities/GetRawVulnReport',
  // Nobody has stated anything of the image.
  'control.scanning.v1.ScanReportsService/GetStatement',
  // Nobody has let the program in.
  'auth.Auth/GetHeadlessSession',
]

/** Calls that need a sign-in with a browser. The tests of sign-in make them. */
export const untried: readonly string[] = [
  'control.iam.v1.SessionsService/EndSession',
  'control.iam.v1.SessionsService/EndOrganizationSession',
  'oidc.SecurityTokenService/ExchangeRefreshToken',
  // It needs a caller with one group, and the operator holds all of them.
  'events.Identities/Create',
]

/** Calls that create and change resources. */
export const changes: readonly Call[] = [
  ['iam.v2.GroupsService/CreateGroup', { parent: '$org', group: { name: 'team', description: 'The team' } }, 'team'],
  ['iam.v2.GroupsService/UpdateGroup', { group: { uid: '$team', description: 'The team that builds the app' } }],
  ['iam.Groups/Create', { parent: '$org', group: { name: 'team-of-v1' } }, 'team1'],
  ['iam.Groups/Update', { id: '$team1', name: 'team-of-v1', description: 'Changed' }],
  ['iam.v2.IdentitiesService/CreateIdentity', { parent: '$org', identity: { name: 'ci', claimMatch } }, 'identity'],
  ['iam.v2.IdentitiesService/UpdateIdentity', { identity: { uid: '$identity', description: 'Builds of main' } }],
  ['iam.Identities/Create', { parentId: '$org', identity: { name: 'ci', claimMatch } }, 'identity1'],
  ['iam.Identities/Update', { id: '$identity1', name: 'ci', description: 'Builds of main', claimMatch }],
  [
    'iam.v2.RolesService/CreateRole',
    { parent: '$org', role: { name: 'lister', capabilities: ['CAP_REPO_LIST'] } },
    'role',
  ],
  ['iam.v2.RolesService/UpdateRole', { role: { uid: '$role', description: 'Lists repositories' } }],
  ['iam.Roles/Create', { parentId: '$org', role: { name: 'lister-of-v1', capabilities: ['repo.list'] } }, 'role1'],
  ['iam.Roles/Update', { id: '$role1', name: 'lister-of-v1', capabilities: ['repo.list', 'tag.list'] }],
  [
    'iam.v2.RoleBindingsService/CreateRoleBinding',
    { parent: '$org', roleBinding: { identityUid: '$identity', roleUid: '$role' } },
    'binding',
  ],
  ['iam.v2.RoleBindingsService/UpdateRoleBinding', { roleBinding: { uid: '$binding', roleUid: '$viewer' } }],
  [
    'iam.v2.RoleBindingsService/BatchCreateRoleBindings',
    { parent: '$team', requests: [{ parent: '$team', roleBinding: { identityUid: '$identity', roleUid: '$role' } }] },
  ],
  ['iam.RoleBindings/Create', { parent: '$org', roleBinding: { identity: '$identity1', role: '$role1' } }, 'binding1'],
  ['iam.RoleBindings/Update', { id: '$binding1', identity: '$identity1', role: '$viewer' }],
  ['iam.RoleBindings/CreateBatch', { parent: '$team1', roleBindings: [{ identity: '$identity1', role: '$role1' }] }],
  [
    'iam.v2.IdentityProvidersService/CreateIdentityProvider',
    { parent: '$org', identityProvider: { name: 'company', defaultRole: '$viewer', oidc } },
    'provider',
  ],
  [
    'iam.v2.IdentityProvidersService/UpdateIdentityProvider',
    { identityProvider: { uid: '$provider', description: 'How our people sign in' } },
  ],
  [
    'iam.IdentityProviders/Create',
    { parentId: '$org', identityProvider: { name: 'company-of-v1', defaultRole: '$viewer', oidc } },
    'provider1',
  ],
  ['iam.IdentityProviders/Update', { id: '$provider1', name: 'company-of-v1', defaultRole: '$viewer', oidc }],
  ['iam.v2.IdentityProvidersService/GenerateScimToken', { identityProviderUid: '$provider' }, 'scim'],
  [
    'iam.v2.IdentityProvidersService/RegenerateScimToken',
    { identityProviderUid: '$provider', overlap: '3600s', etag: '$scim.etag' },
    'scimAgain',
  ],
  [
    'iam.v2.IdentityProvidersService/SetScimEnabled',
    { identityProviderUid: '$provider', enabled: true, etag: '$scimAgain.etag' },
  ],
  ['iam.v2.IdentityProvidersService/RevokeScimToken', { identityProviderUid: '$provider' }],
  ['iam.IdentityProviders/GenerateScimToken', { identityProviderId: '$provider1' }, 'scim1'],
  [
    'iam.IdentityProviders/RegenerateScimToken',
    { identityProviderId: '$provider1', overlap: '3600s', etag: '$scim1.etag' },
    'scim1Again',
  ],
  [
    'iam.IdentityProviders/SetScimEnabled',
    { identityProviderId: '$provider1', enabled: true, etag: '$scim1Again.etag' },
  ],
  ['iam.IdentityProviders/RevokeScimToken', { identityProviderId: '$provider1' }],
  [
    'iam.v2.ExternalGroupRoleMappingsService/CreateExternalGroupRoleMapping',
    {
      parent: '$provider',
      externalGroupRoleMapping: { externalGroupId: 'developers', roleUid: '$role', scope: '$org' },
    },
    'mapping',
  ],
  [
    'iam.ExternalGroupRoleMappings/Create',
    { parentId: '$provider1', mapping: { externalGroupId: 'developers', roleUidp: '$role', scope: '$org' } },
    'mapping1',
  ],
  [
    'iam.v2.GroupInvitesService/CreateGroupInvite',
    { parent: '$org', groupInvite: { roleUid: '$viewer', ttl: '604800s', singleUse: true } },
    'invite',
  ],
  ['iam.GroupInvites/Create', { group: '$org', role: '$viewer', ttl: '604800s' }, 'invite1'],
  ['iam.GroupInvites/CreateWithGroup', { group: 'a-new-organization', role: '$viewer', ttl: '604800s' }],
  [
    'iam.v2.AccountAssociationsService/CreateAccountAssociation',
    { parent: '$team', accountAssociation: { name: 'accounts', amazon } },
  ],
  [
    'iam.v2.AccountAssociationsService/UpdateAccountAssociation',
    { accountAssociation: { uid: '$team', description: 'Our AWS account' } },
  ],
  [
    'iam.v2.AccountAssociationsService/CheckAccountAssociation',
    { uid: '$team', providerType: 'ACCOUNT_PROVIDER_TYPE_AMAZON' },
  ],
  ['iam.GroupAccountAssociations/Create', { group: '$team1', name: 'accounts', amazon }],
  ['iam.GroupAccountAssociations/Update', { group: '$team1', name: 'accounts', amazon }],
  ['iam.GroupAccountAssociations/Check', { group: '$team1', accountType: 'AMAZON' }],
  ['iam.v2.TermsService/AcceptTerms', { group: '$org', documentIds: ['terms-of-service.v1'] }],
  ['iam.Terms/AcceptTerms', { group: '$team1', documentIds: ['terms-of-service.v1'] }],
  [
    'control.quotas.v1.QuotasService/SetQuotas',
    { organization: '$org', limits: [{ name: 'repositories', limit: '100' }] },
  ],
  ['registry.v2.ReposService/CreateRepo', { parent: '$team', repo: { name: 'worker' } }, 'repo'],
  ['registry.v2.ReposService/UpdateRepo', { repo: { uid: '$repo', description: 'What works in the background' } }],
  ['registry.v2.ReposService/UpdateRepoReadme', { repoReadme: { uid: '$repo', content: '# Worker\n' } }],
  ['registry.v2.TagsService/CreateTag', { parent: '$app', tag: { name: 'stable', digest: '$digest' } }, 'tag'],
  ['registry.Registry/CreateRepo', { parentId: '$team1', repo: { name: 'worker' } }, 'repo1'],
  ['registry.Registry/UpdateRepo', { id: '$repo1', name: 'worker', description: 'What works in the background' }],
  ['registry.Registry/CreateTag', { repoId: '$app', tag: { name: 'stable-of-v1', digest: '$digest' } }, 'tag1'],
  ['registry.Registry/UpdateTag', { id: '$tag1', name: 'stable-of-v1', digest: '$older' }],
  ['registry.Registry/CreateDeployment', { parentId: '$app', charts: [chart] }],
  ['registry.Registry/UpdateDeployment', { repoId: '$app', charts: [chart] }],
  ['registry.Registry/UpdateRegistrySettings', { registryId: '$org', uniqueTags: true }],
  [
    'control.registry.v1.TagHistoryService/ImportTagHistory',
    {
      repoUid: '$repo',
      tags: [{ name: 'latest', records: [{ time: '2025-01-02T03:04:05.000Z', digest: '$digest' }] }],
    },
  ],
  [
    'control.vulnerabilities.v1.AdvisoryControlService/ImportAdvisories',
    { parent: '$org', advisories: [{ origin: 'acme', advisory: advisory('ACME-2026-0001') }] },
  ],
  [
    'control.vulnerabilities.v1.AdvisoryControlService/CreateAdvisoryEvent',
    {
      parent: '$advisory',
      advisoryEvent: { author: 'security', fixNotPlanned: { note: 'The release is out of support' } },
    },
    'advisoryEvent',
  ],
  [
    'control.vulnerabilities.v1.AdvisoryControlService/ReviewAdvisoryEvent',
    { uid: '$advisoryEvent', reviewState: 'REVIEW_STATE_APPROVED' },
  ],
  ['vulnerabilities.v1.Advisories/Create', { parentId: '$org', advisory: advisory1 }, 'advisory1'],
  ['vulnerabilities.v1.Advisories/Update', { id: '$advisory1', ...advisory1, componentLocation: '/usr/lib' }],
  [
    'vulnerabilities.v1.Advisories/CreateAdvisoryEvent',
    { parentId: '$advisory1', advisoryEvent: { author: 'security', fixNotPlanned: { note: 'Out of support' } } },
    'advisoryEvent1',
  ],
  [
    'vulnerabilities.v1.Advisories/UpdateAdvisoryEvent',
    { id: '$advisoryEvent1', author: 'security', fixNotPlanned: { note: 'The release is out of support' } },
  ],
  [
    'control.advisory.v1.VulnerabilityControlService/ImportVulnerabilities',
    { vulnerabilities: [{ id: 'GO-2024-0001', aliases: ['CVE-2024-1234'], summary: 'A buffer is too small' }] },
  ],
  ['control.libraries.v1.ArtifactControlService/ImportArtifacts', { artifacts, run: { id: run } }],
  [
    'events.v2.SubscriptionsService/CreateSubscription',
    { parent: '$org', subscription: { sink: 'https://hooks.example.com/' } },
    'subscription',
  ],
  [
    'events.Subscriptions/Create',
    { parentId: '$org', subscription: { sink: 'https://hooks.example.com/' } },
    'subscription1',
  ],
  [
    'control.events.v1.DeliveriesService/UpdateSubscriptionSettings',
    { settings: { uid: '$subscription', types: ['dev.pinfold.registry.push.v1'] } },
  ],
  ['control.events.v1.DeliveriesService/PauseSubscription', { uid: '$subscription', reason: 'The receiver moves' }],
  ['control.events.v1.DeliveriesService/ResumeSubscription', { uid: '$subscription' }],
  ['control.events.v1.DeliveriesService/RotateSubscriptionSecret', { uid: '$subscription', overlap: '3600s' }],
  ['control.iam.v1.SessionsService/CreateConsoleCode', {}],
  ...accessCalls,
  ['iam.v2.GroupsService/RequestGroupAccess', { groupUid: '$company' }, undefined, 'newcomer'],
  ['control.iam.v1.AccessRequestsService/ApproveAccessRequest', { uid: '$request', roleUid: '$viewer' }],
  ['iam.Groups/RequestGroupAccess', { groupId: '$company' }, undefined, 'newcomer1'],
  [
    'iam.v2.IdentitiesService/UpdateIdentityMetadata',
    { identityMetadata: { company: 'Acme', jobTitle: 'Engineer' } },
    undefined,
    'person',
  ],
  ['auth.Auth/Register', { code: '$invite.code' }, undefined, 'visitor'],
]

/** Calls that read. They change nothing. */
export const reads: readonly Call[] = [
  ['iam.v2.GroupsService/GetGroup', { uid: '$team' }],
  ['iam.v2.GroupsService/ListGroups', { uidp: { childrenOf: '$org' }, pageSize: 2, orderBy: 'name' }],
  ['iam.Groups/List', { uidp: { childrenOf: '$org' } }],
  ['iam.v2.IdentitiesService/GetIdentity', { uid: '$identity' }],
  ['iam.v2.IdentitiesService/ListIdentities', { uidp: { childrenOf: '$org' }, name: 'ci' }],
  ['iam.v2.IdentitiesService/LookupIdentity', account],
  ['iam.Identities/List', { uidp: { childrenOf: '$org' } }],
  ['iam.Identities/Lookup', account],
  ['iam.v2.RolesService/GetRole', { uid: '$role' }],
  ['iam.v2.RolesService/ListRoles', { uidp: { childrenOf: '$org' } }],
  ['iam.Roles/List', { parent: '$org' }],
  ['iam.v2.RoleBindingsService/GetRoleBinding', { uid: '$binding' }],
  ['iam.v2.RoleBindingsService/ListRoleBindings', { identity: '$identity' }],
  [
    'control.iam.v1.AccessService/ExplainAccess',
    { uid: '$org', identityUid: '$identity', capability: 'CAP_REPO_LIST' },
  ],
  [
    'control.iam.v1.ClaimChecksService/CheckClaims',
    {
      uid: '$org',
      claims: '{"iss":"https://token.actions.githubusercontent.com","sub":"repo:acme/app:ref:refs/heads/main"}',
      match: {
        issuer: 'https://token.actions.githubusercontent.com',
        subjectPattern: 'repo:acme/app:ref:refs/(heads/main|tags/.+)',
      },
    },
  ],
  ['iam.RoleBindings/List', { uidp: { childrenOf: '$org' } }],
  ['control.iam.v1.PendingBindingsService/ListPendingBindings', {}, undefined, 'person'],
  ['control.iam.v1.SessionsService/ListSessions', {}, undefined, 'person'],
  ['iam.v2.GroupsService/LookupGroup', {}, undefined, 'newcomer'],
  ['iam.Groups/LookupGroup', {}, undefined, 'newcomer'],
  ['iam.v2.GroupsService/CheckEligibility', {}, undefined, 'newcomer'],
  ['iam.Groups/CheckEligibility', {}, undefined, 'newcomer'],
  ['control.iam.v1.AccessRequestsService/ListAccessRequests', { organization: '$company' }],
  ['control.iam.v1.SessionsService/ListOrganizationSessions', { organization: '$org' }],
  ['control.iam.v1.EmailDomainsService/ListEmailDomains', { organization: '$org' }],
  ['control.iam.v1.PushTokensService/ListPushTokens', {}],
  ['control.iam.v1.PushTokensService/ListGroupPushTokens', { group: '$org' }],
  ['iam.v2.IdentityProvidersService/GetIdentityProvider', { uid: '$provider' }],
  ['control.iam.v1.ProviderDiscoveryService/GetProviderDiscovery', { uid: '$provider' }],
  ['iam.v2.IdentityProvidersService/ListIdentityProviders', { uidp: { childrenOf: '$org' } }],
  ['iam.IdentityProviders/List', { uidp: { childrenOf: '$org' } }],
  ['iam.v2.ExternalGroupRoleMappingsService/GetExternalGroupRoleMapping', { uid: '$mapping' }],
  ['iam.v2.ExternalGroupRoleMappingsService/ListExternalGroupRoleMappings', { identityProviderUid: '$provider' }],
  ['iam.ExternalGroupRoleMappings/Get', { uid: '$mapping1' }],
  ['iam.ExternalGroupRoleMappings/List', { identityProviderUidp: '$provider1' }],
  ['iam.v2.GroupInvitesService/GetGroupInvite', { uid: '$invite1' }],
  ['iam.v2.GroupInvitesService/ListGroupInvites', { uidp: { childrenOf: '$org' } }],
  ['iam.GroupInvites/List', { group: '$org' }],
  ['iam.v2.AccountAssociationsService/GetAccountAssociation', { uid: '$team' }],
  ['iam.v2.AccountAssociationsService/ListAccountAssociations', { uidp: { descendantsOf: '$org' } }],
  ['iam.GroupAccountAssociations/List', { group: '$team1' }],
  ['iam.v2.TermsService/ListTermsAcceptances', { group: '$org' }],
  ['iam.Terms/ListAccepted', { group: '$team1' }],
  ['control.quotas.v1.QuotasService/GetQuotas', { organization: '$org' }],
  ['registry.v2.ReposService/GetRepo', { uid: '$repo' }],
  ['registry.v2.ReposService/ListRepos', { uidp: { descendantsOf: '$org' }, name: 'worker' }],
  ['registry.v2.ReposService/GetRepoReadme', { uid: '$repo' }],
  ['control.registry.v1.RepoUsageService/GetRepoUsage', { repoUid: '$app' }],
  [
    'control.registry.v1.UpstreamsService/CreateUpstream',
    {
      parent: '$org',
      upstream: { name: 'hub', url: 'https://registry.example.com', prefix: 'library', allow: ['alpine|nginx'] },
    },
    'upstream',
  ],
  ['control.registry.v1.UpstreamsService/GetUpstream', { uid: '$upstream' }],
  ['control.registry.v1.UpstreamsService/ListUpstreams', {}],
  [
    'control.registry.v1.UpstreamsService/UpdateUpstream',
    { upstream: { uid: '$upstream', requestsPerSecond: 2 }, updateMask: 'requestsPerSecond' },
  ],
  [
    'control.registry.v1.FollowsService/FollowRepo',
    { repoUid: '$repo', upstreamUid: '$upstream', path: 'alpine', tags: ['3.20', '3\\.[0-9]+'], interval: '3600s' },
  ],
  ['control.registry.v1.FollowsService/GetFollow', { repoUid: '$repo' }],
  ['control.registry.v1.FollowsService/ListFollows', { group: '$org' }],
  ['control.registry.v1.FollowsService/CheckFollow', { repoUid: '$repo' }],
  ['control.registry.v1.FollowsService/UnfollowRepo', { repoUid: '$repo' }],
  ['control.registry.v1.UpstreamsService/DeleteUpstream', { uid: '$upstream' }],
  ['registry.v2.TagsService/GetTag', { uid: '$tag' }],
  ['registry.v2.TagsService/ListTags', { uidp: { childrenOf: '$app' }, digest: '$digest' }],
  ['registry.v2.ImagesService/GetArchitectures', { repoUid: '$app', digest: '$digest' }],
  ['registry.v2.ImagesService/GetSize', { repoUid: '$app', digest: '$digest' }],
  ['control.registry.v1.DigestsService/ListReferrers', { repoUid: '$app', digest: '$digest' }],
  ['control.registry.v1.DigestsService/GetDigestPulls', { repoUid: '$app', digest: '$digest' }],
  ['control.registry.v1.DigestsService/ListUnpulledDigests', { repoUid: '$app', days: 30 }],
  ['control.registry.v1.TagHistoryService/ListTagHistory', { repoUid: '$app', tag: 'latest' }],
  ['control.registry.v1.TagHistoryService/ListToldTagHistory', { repoUid: '$app', tag: 'latest' }],
  ['control.registry.v1.TagSearchService/SearchTags', { repoUid: '$app', part: 'late' }],
  ['registry.Registry/ListRepos', { uidp: { childrenOf: '$team1' } }],
  ['registry.Registry/GetRepoCountBySource', { id: '$app' }],
  ['registry.Registry/ListTags', { uidp: { childrenOf: '$app' }, name: 'stable' }],
  ['registry.Registry/GetRepoTagsSummary', { repoId: '$app' }],
  [
    'control.scanning.v1.VulnerabilitySourcesService/BeginVulnerabilitySource',
    { source: { name: 'osv/PyPI', url: 'https://osv.example.com/PyPI/', licence: 'CC-BY-4.0', ecosystems: ['PyPI'] } },
  ],
  [
    'control.scanning.v1.VulnerabilitySourcesService/PutVulnerabilityRecords',
    { run: sourceRun, records: [sourceRecord] },
  ],
  [
    'control.scanning.v1.VulnerabilitySourcesService/PutVulnerabilityRanks',
    { run: sourceRun, ranks: [{ cve: 'CVE-2023-30861', likelihood: { epss: 0.00324, percentile: 0.54931 } }] },
  ],
  [
    'control.scanning.v1.VulnerabilitySourcesService/FinishVulnerabilitySource',
    { run: sourceRun, buildTime: '2026-11-20T10:00:00Z', complete: true },
  ],
  ['control.scanning.v1.VulnerabilitySourcesService/ListVulnerabilitySources', {}],
  [
    'control.registry.v1.LifecyclesService/ImportLifecycles',
    {
      products: [
        {
          name: 'go',
          label: 'Go',
          aliases: ['golang'],
          releases: [
            { cycle: '1.26', releaseDate: '2026-02-10', latest: '1.26.7' },
            { cycle: '1.25', releaseDate: '2025-08-12', eolDate: '2026-02-10', latest: '1.25.14' },
          ],
        },
      ],
    },
  ],
  ['registry.Registry/ListEolTags', { uidp: { childrenOf: '$app' } }],
  ['registry.Registry/ListTagHistory', { parentId: '$tag1' }],
  ['registry.Registry/GetSbom', { repoId: '$app', digest: '$digest' }],
  ['registry.Registry/GetImageConfig', { repoId: '$app', digest: '$digest' }],
  ['registry.Registry/GetArchs', { repoId: '$app', digest: '$digest' }],
  ['registry.Registry/GetSize', { repoId: '$app', digest: '$digest' }],
  ['registry.Registry/GetRawSbom', { repoId: '$app', digest: '$digest' }],
  ['registry.Registry/GetVulnReport', { repoId: '$app', digest: '$digest' }],
  ['control.scanning.v1.FindingsService/GetImageFindings', { repoUid: '$app', digest: '$digest' }],
  [
    'control.scanning.v1.FindingsService/ExportImageFindings',
    { repoUid: '$app', digest: '$digest', format: 'cyclonedx' },
  ],
  ['control.scanning.v1.FindingsService/VerifyFindings', {}],
  ['control.registry.v1.ViewsService/ResolveTag', { repoUid: '$app', tag: 'stable', minAge: '7d' }],
  [
    'control.registry.v1.PullRulesService/CreatePullRule',
    { parent: '$app', pullRule: { name: 'a week', belowGroup: '$org', minAge: '7d', mode: 'SERVE_OLDER' } },
    'pullRule',
  ],
  ['control.registry.v1.PullRulesService/GetPullRule', { uid: '$pullRule' }],
  [
    'control.registry.v1.PullRulesService/UpdatePullRule',
    { pullRule: { uid: '$pullRule', minAge: '3d' }, updateMask: 'min_age' },
  ],
  ['control.registry.v1.PullRulesService/ListPullRules', { scopeUid: '$app' }],
  [
    'control.registry.v1.PullRulesService/CreatePullRuleException',
    {
      parent: '$app',
      pullRuleException: { digest: '$digest', reason: 'Mends CVE-2026-1234', expireTime: '$weekAhead' },
    },
    'pullException',
  ],
  ...gateCalls,
  ...retentionCalls,
  [
    'control.scanning.v1.ScanReportsService/ImportScanReport',
    { repoUid: '$app', digest: '$digest', report: Buffer.from(scanReport).toString('base64') },
  ],
  ['control.scanning.v1.ScanReportsService/ListScanReports', { repoUid: '$app', digest: '$digest' }],
  ['control.scanning.v1.ScanReportsService/ListStatements', { repoUid: '$app', digest: '$digest' }],
  ['control.scanning.v1.ScanReportsService/GetStatement', { repoUid: '$app', digest: '$digest', uid: '1.1' }],
  ['control.scanning.v1.ScanReportsService/ScanImage', { repoUid: '$app', digest: '$digest' }],
  [
    'control.scanning.v1.ScannersService/PutScanner',
    { scanner: { name: 'trivy', url: 'https://trivy-adapter.example.com', credential: 'Bearer s3cret', onPush: true } },
  ],
  ['control.scanning.v1.ScannersService/ListScanners', {}],
  ['control.scanning.v1.ScannersService/RemoveScanner', { name: 'trivy' }],
  [
    'control.scanning.v1.RiskAcceptancesService/CreateRiskAcceptance',
    {
      parent: '$app',
      riskAcceptance: {
        vulnerability: 'CVE-2026-1234',
        package: 'pkg:pypi/flask',
        reason: 'The templates are ours alone',
        expireTime: '$yearAhead',
      },
    },
    'risk',
  ],
  ...signerCalls,
  ...foundCalls,
  ['registry.Registry/ListManifestMetadata', { repoId: '$app' }],
  ['registry.Registry/GetManifestDigestCount', { parentId: '$org' }],
  ['registry.Registry/GetPackageVersionMetadata', { package: 'go' }],
  ['registry.Registry/GetUpdateStatus', { repoId: '$app' }],
  ['registry.Registry/GetSyncStatus', { repoId: '$app' }],
  ['registry.Registry/ListSyncStatuses', { registryId: '$org' }],
  ['registry.Registry/GetDeployment', { repoId: '$app' }],
  ['registry.Registry/GetRegistrySettings', { registryId: '$org' }],
  ['registry.Vulnerabilities/ListVulnReports', { repoId: '$app', digest: '$digest' }],
  ['registry.Vulnerabilities/GetRawVulnReport', { digest: '$digest' }],
  [
    'registry.Vulnerabilities/ListVulnCountReports',
    { repo: '$app', tag: 'latest', from: '2026-01-01T00:00:00Z', to: '2026-01-31T00:00:00Z' },
  ],
  [
    'registry.Vulnerabilities/ListCumulativeVulnCountReports',
    { repo: '$app', tag: 'latest', from: '2026-01-01T00:00:00Z', to: '2026-01-31T00:00:00Z' },
  ],
  ['vulnerabilities.v2.AdvisoriesService/GetAdvisory', { uid: '$advisory' }],
  ['vulnerabilities.v2.AdvisoriesService/ListAdvisories', { aliases: ['CVE-2024-1234'] }],
  ['vulnerabilities.v1.Advisories/List', { aliases: ['CVE-2024-1234'] }],
  ['vulnerabilities.v1.Advisories/ListAdvisoryEvents', { parentId: '$advisory' }],
  ['advisory.v2.SecurityAdvisoryService/ListDocuments', { cves: ['CVE-2024-1234'] }],
  ['advisory.v2.SecurityAdvisoryService/ListVulnerabilityMetadata', { ids: ['GO-2024-0001'] }],
  [
    'advisory.v2.SecurityAdvisoryService/ListResolvedVulnsReports',
    { imageRefs: [{ repo: '$app' }], startTime: '2026-01-01T00:00:00.000Z', endTime: '2026-01-03T00:00:00.000Z' },
  ],
  ['advisory.SecurityAdvisory/ListDocuments', { cves: ['CVE-2024-1234'] }],
  ['advisory.SecurityAdvisory/ListVulnerabilityMetadata', { ids: ['GO-2024-0001'] }],
  [
    'advisory.SecurityAdvisory/ListResolvedVulnsReports',
    { imageRefs: [{ repo: '$app' }], from: '2026-01-01T00:00:00.000Z', to: '2026-01-03T00:00:00.000Z' },
  ],
  ['libraries.v2.ArtifactsService/ListArtifacts', { ecosystems: ['ECOSYSTEM_PYTHON'], query: 'flask' }],
  ['libraries.v2.ArtifactsService/ListArtifactVersions', { artifactId: '$artifact' }],
  ['libraries.v2.ArtifactsService/GetArtifactCount', { ecosystems: ['ECOSYSTEM_PYTHON'] }],
  ['libraries.Artifacts/List', { ecosystems: ['PYTHON'], query: 'flask' }],
  ['libraries.Artifacts/ListVersions', { id: '$artifact' }],
  ['libraries.Artifacts/GetArtifactCount', { ecosystems: ['PYTHON'] }],
  ['control.libraries.v1.ArtifactControlService/GetArtifactImportRun', { id: run }],
  ['events.v2.SubscriptionsService/GetSubscription', { uid: '$subscription' }],
  ['events.v2.SubscriptionsService/ListSubscriptions', { uidp: { childrenOf: '$org' } }],
  ['events.Subscriptions/List', { uidp: { childrenOf: '$org' } }],
  ['control.events.v1.AuditService/ListAuditEntries', { uidp: { childrenOf: '$org' }, pageSize: 1 }, 'audit'],
  ['control.events.v1.AuditService/GetAuditEntry', { uid: '$auditEntry' }],
  ['control.events.v1.AuditService/ListAuditActions', {}],
  [
    'control.events.v1.AuditService/ExportAuditEntries',
    { group: '$org', format: 'csv', type: 'dev.pinfold.api.iam.group.created.v1' },
  ],
  ['control.events.v1.DeliveriesService/GetSubscriptionSettings', { uid: '$subscription' }],
  ['control.events.v1.DeliveriesService/ListDeliveries', { uid: '$subscription' }],
  ['control.events.v1.DeliveriesService/GetDelivery', { uid: '$delivery' }],
  ['control.events.v1.RefusalsService/ListRefusals', { group: '$org' }],
  ['control.events.v1.EventStreamService/StreamEvents', { group: '$org', after: '0' }],
  ['ping.v2.PingService/Ping', {}],
  ['ping.PingService/Ping', {}],
  ['auth.Auth/Validate', {}],
  ['auth.Auth/GetHeadlessSession', { code: '3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08' }],
  ['oidc.SecurityTokenService/Exchange', { aud: ['$url'], identity: '$builder' }, undefined, 'outsider'],
]

/** Calls that delete and revoke. */
export const deletions: readonly Call[] = [
  ['control.iam.v1.AccessRequestsService/RefuseAccessRequest', { uid: '$request2' }],
  ['control.iam.v1.EmailDomainsService/DeleteEmailDomain', { uid: '$emailDomain' }],
  ['control.iam.v1.PushTokensService/RevokePushToken', { uid: '$pushToken1' }],
  ['control.iam.v1.PushTokensService/RevokeGroupPushToken', { group: '$org', pushTokenUid: '$pushToken2' }],
  ['control.iam.v1.PendingBindingsService/AcceptPendingBinding', { uid: '$pending' }, undefined, 'person'],
  ['control.iam.v1.PendingBindingsService/RefusePendingBinding', { uid: '$pending2' }, undefined, 'person'],
  ['control.events.v1.DeliveriesService/SendTestEvent', { uid: '$subscription' }],
  ['control.events.v1.DeliveriesService/Redeliver', { uid: '$subscription', deliveryUids: ['$delivery'] }],
  ['control.events.v1.DeliveriesService/ReplayEvents', { uid: '$subscription', startTime: '$dayAgo' }],
  ['vulnerabilities.v1.Advisories/Delete', { id: '$advisory1' }],
  ['events.v2.SubscriptionsService/DeleteSubscription', { uid: '$subscription' }],
  ['events.Subscriptions/Delete', { id: '$subscription1' }],
  ['registry.v2.TagsService/DeleteTag', { uid: '$tag' }],
  [
    'control.registry.v1.TagRestoresService/RestoreTag',
    { repoUid: '$app', tag: 'stable', digest: '$digest', reason: 'The tag was deleted by mistake' },
  ],
  ['registry.Registry/DeleteTag', { id: '$tag1' }],
  ['registry.v2.ReposService/DeleteRepo', { uid: '$repo' }],
  ['registry.Registry/DeleteRepo', { id: '$repo1' }],
  ['control.registry.v1.LedgersService/ListDeletedRepos', { uidp: { descendantsOf: '$org' } }],
  ['control.registry.v1.LedgersService/GetDeletedRepo', { uid: '$repo' }],
  ['control.registry.v1.TagHistoryService/ListDeletedRepoTagHistory', { repoUid: '$repo', tag: 'latest' }],
  ['control.registry.v1.LedgersService/EraseLedger', { repoUid: '$repo' }],
  ['control.registry.v1.LedgersService/ResumeLedgerLogs', {}],
  ['control.registry.v1.LedgersService/RotateLedgerLogKey', { organizationUid: '$org' }],
  [
    'control.registry.v1.RetentionService/BreakPromises',
    { repoUid: '$app', digest: '$digest', reason: 'A key was in it, and is public' },
  ],
  ['control.registry.v1.BlobControlService/CollectBlobs', { dryRun: true }],
  ['iam.v2.AccountAssociationsService/DeleteAccountAssociation', { uid: '$team' }],
  ['iam.GroupAccountAssociations/Delete', { group: '$team1' }],
  ['iam.v2.GroupInvitesService/DeleteGroupInvite', { uid: '$invite2' }],
  ['iam.GroupInvites/Delete', { id: '$invite1' }],
  ['iam.v2.ExternalGroupRoleMappingsService/DeleteExternalGroupRoleMapping', { uid: '$mapping' }],
  [
    'iam.v2.ExternalGroupRoleMappingsService/BatchDeleteExternalGroupRoleMappings',
    { parent: '$provider', names: ['$mapping2'] },
  ],
  ['iam.ExternalGroupRoleMappings/Delete', { id: '$mapping1' }],
  ['iam.ExternalGroupRoleMappings/BatchDelete', { parentId: '$provider1', ids: ['$mapping3'] }],
  ['iam.v2.IdentityProvidersService/DeleteIdentityProvider', { uid: '$provider' }],
  ['iam.IdentityProviders/Delete', { id: '$provider1' }],
  ['iam.v2.RoleBindingsService/DeleteRoleBinding', { uid: '$binding' }],
  ['iam.RoleBindings/Delete', { id: '$binding1' }],
  ['iam.v2.IdentitiesService/DeleteIdentity', { uid: '$identity' }],
  ['iam.Identities/Delete', { id: '$identity1' }],
  ['iam.v2.RolesService/DeleteRole', { uid: '$role' }],
  ['iam.Roles/Delete', { id: '$role1' }],
  ['iam.v2.GroupsService/DeleteGroup', { uid: '$team' }],
  ['iam.Groups/Delete', { id: '$team1' }],
  ['auth.Auth/Delete', { id: '$person' }, undefined, 'person'],
]
