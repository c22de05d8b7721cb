// JSON types of the API messages that the console reads.
import type { WhoAmIJson } from '#gen/pinfold/auth/v1/auth_pb.ts'
import type { AuditActionJson, AuditEntryJson } from '#gen/pinfold/control/events/v1/audit_pb.ts'
import type {
  DeliveryJson,
  ReplayEventsResponseJson,
  SubscriptionSettingsJson,
} from '#gen/pinfold/control/events/v1/deliveries_pb.ts'
import type { RefusalJson } from '#gen/pinfold/control/events/v1/refusals_pb.ts'
import type { AccessExplanationJson, GrantorJson } from '#gen/pinfold/control/iam/v1/access_pb.ts'
import type { AccessRequestJson } from '#gen/pinfold/control/iam/v1/access_requests_pb.ts'
import type { ClaimChecksJson } from '#gen/pinfold/control/iam/v1/claim_checks_pb.ts'
import type { EmailDomainJson } from '#gen/pinfold/control/iam/v1/email_domains_pb.ts'
import type { PendingBindingJson } from '#gen/pinfold/control/iam/v1/pending_bindings_pb.ts'
import type { ProviderDiscoveryJson } from '#gen/pinfold/control/iam/v1/provider_discovery_pb.ts'
import type { PushTokenJson } from '#gen/pinfold/control/iam/v1/push_tokens_pb.ts'
import type { SessionJson } from '#gen/pinfold/control/iam/v1/sessions_pb.ts'
import type { QuotasJson } from '#gen/pinfold/control/quotas/v1/quotas_pb.ts'
import type { DigestPullsJson, ReferrerJson } from '#gen/pinfold/control/registry/v1/digests_pb.ts'
import type { FollowJson } from '#gen/pinfold/control/registry/v1/follows_pb.ts'
import type { PullRuleJson } from '#gen/pinfold/control/registry/v1/pull_rules_pb.ts'
import type { RepoUsageJson } from '#gen/pinfold/control/registry/v1/repo_usage_pb.ts'
import type {
  HoldJson,
  PromiseJson,
  QuarantinedDigestJson,
  RetentionRuleJson,
  TagRuleJson,
} from '#gen/pinfold/control/registry/v1/retention_pb.ts'
import type { PlannedDeletionJson, RetentionPlanJson } from '#gen/pinfold/control/registry/v1/retention_plans_pb.ts'
import type { TagHistoryRecordJson, ToldTagHistoryRecordJson } from '#gen/pinfold/control/registry/v1/tag_history_pb.ts'
import type { UpstreamJson } from '#gen/pinfold/control/registry/v1/upstreams_pb.ts'
import type { ResolveTagResponseJson } from '#gen/pinfold/control/registry/v1/views_pb.ts'
import type { FindingJson, ImageFindingsJson } from '#gen/pinfold/control/scanning/v1/findings_pb.ts'
import type { GateJson, PreviewGateResponseJson } from '#gen/pinfold/control/scanning/v1/gates_pb.ts'
import type {
  ImageComparisonJson,
  ImagePackageJson,
  ListImagePackagesResponseJson,
  ListVulnerableImagesResponseJson,
  VulnerableImageJson,
} from '#gen/pinfold/control/scanning/v1/images_pb.ts'
import type { CheckPoliciesResponseJson } from '#gen/pinfold/control/scanning/v1/policy_checks_pb.ts'
import type { RiskAcceptanceJson } from '#gen/pinfold/control/scanning/v1/risks_pb.ts'
import type { VexSignerJson } from '#gen/pinfold/control/scanning/v1/signers_pb.ts'
import type { ListVulnerabilitySourcesResponseJson } from '#gen/pinfold/control/scanning/v1/sources_pb.ts'
import type { SearchResultJson } from '#gen/pinfold/control/search/v1/search_pb.ts'
import type {
  DryRunOverviewJson,
  ImageLayersJson,
  ImageOverviewJson,
  ImageSummaryJson,
  ScopeSummaryJson,
  TagUpdateJson,
} from '#gen/pinfold/control/summaries/v1/summaries_pb.ts'
import type { SubscriptionJson } from '#gen/pinfold/events/v2/subscriptions_pb.ts'
import type { ExternalGroupRoleMappingJson } from '#gen/pinfold/iam/v2/external_group_role_mappings_pb.ts'
import type { GroupInviteJson } from '#gen/pinfold/iam/v2/group_invites_pb.ts'
import type { GroupJson } from '#gen/pinfold/iam/v2/groups_pb.ts'
import type { IdentityJson } from '#gen/pinfold/iam/v2/identities_pb.ts'
import type { IdentityProviderJson } from '#gen/pinfold/iam/v2/identity_providers_pb.ts'
import type { RoleBindingJson } from '#gen/pinfold/iam/v2/role_bindings_pb.ts'
import type { RoleJson } from '#gen/pinfold/iam/v2/roles_pb.ts'
import type { ArtifactJson, ArtifactVersionJson } from '#gen/pinfold/libraries/v2/artifacts_pb.ts'
import type { RepoJson } from '#gen/pinfold/registry/v2/repos_pb.ts'
import type { TagJson } from '#gen/pinfold/registry/v2/tags_pb.ts'
import type { AdvisoryJson } from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import type { Full } from './api.ts'

export type WhoAmI = Full<WhoAmIJson>
export type Group = Full<GroupJson>
export type Repo = Full<RepoJson>
export type Tag = Full<TagJson>
export type Move = Full<TagHistoryRecordJson>
export type ReportedMove = Full<ToldTagHistoryRecordJson>
export type Referrer = Full<ReferrerJson>
export type DigestPulls = Full<DigestPullsJson>
export type Resolution = Full<ResolveTagResponseJson>
export type RepoUsage = Full<RepoUsageJson>
export type RetentionRule = Full<RetentionRuleJson>
export type TagRule = Full<TagRuleJson>
export type Hold = Full<HoldJson>
export type Quarantined = Full<QuarantinedDigestJson>
/** Type `Promise` of the API, under another name than JavaScript's Promise. */
export type Kept = Full<PromiseJson>
export type PullRule = Full<PullRuleJson>
export type GatePreview = Full<PreviewGateResponseJson>
export type Gate = Full<GateJson>
export type Verdict = Full<CheckPoliciesResponseJson>['results'][number]
export type Risk = Full<RiskAcceptanceJson>
export type Signer = Full<VexSignerJson>
export type Plan = Full<RetentionPlanJson>
export type PlannedDeletion = Full<PlannedDeletionJson>
export type Upstream = Full<UpstreamJson>
export type Follow = Full<FollowJson>
export type Identity = Full<IdentityJson>
export type Role = Full<RoleJson>
export type RoleBinding = Full<RoleBindingJson>
export type Explanation = Full<AccessExplanationJson>
export type RefusedRequest = Full<RefusalJson>
export type Session = Full<SessionJson>
export type PushToken = Full<PushTokenJson>
export type PendingBinding = Full<PendingBindingJson>
export type Package = Full<ImagePackageJson>
export type Packages = Full<ListImagePackagesResponseJson>
export type Finding = Full<FindingJson>
export type Findings = Full<ImageFindingsJson>
export type Comparison = Full<ImageComparisonJson>
export type VulnerableImage = Full<VulnerableImageJson>
export type VulnerableImages = Full<ListVulnerableImagesResponseJson>
export type Gap = Findings['gaps'][number]
export type AccessRequest = Full<AccessRequestJson>
export type Grantor = Full<GrantorJson>
export type ClaimChecks = Full<ClaimChecksJson>
export type Invite = Full<GroupInviteJson>
export type Provider = Full<IdentityProviderJson>
export type EmailDomain = Full<EmailDomainJson>
export type Mapping = Full<ExternalGroupRoleMappingJson>
export type Subscription = Full<SubscriptionJson>
export type SubscriptionSettings = Full<SubscriptionSettingsJson>
export type Discovery = Full<ProviderDiscoveryJson>
export type VulnerabilitySources = Full<ListVulnerabilitySourcesResponseJson>
export type Delivery = Full<DeliveryJson>
export type Replayed = Full<ReplayEventsResponseJson>
export type AuditAction = Full<AuditActionJson>
export type AuditEntry = Full<AuditEntryJson>
export type Advisory = Full<AdvisoryJson>
export type Artifact = Full<ArtifactJson>
export type ArtifactVersion = Full<ArtifactVersionJson>
export type ImageSummary = Full<ImageSummaryJson>
export type ImageLayers = Full<ImageLayersJson>
export type ScopeSummary = Full<ScopeSummaryJson>
export type SearchResult = Full<SearchResultJson>
export type ImageOverview = Full<ImageOverviewJson>
export type DryRunOverview = Full<DryRunOverviewJson>
export type Quotas = Full<QuotasJson>
export type TagUpdate = Full<TagUpdateJson>
