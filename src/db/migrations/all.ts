import type { Migration } from '../migrate.ts'
import { migration as lists } from './0001-lists.ts'
import { migration as iam } from './0002-iam.ts'
import { migration as events } from './0003-events.ts'
import { migration as repos } from './0004-repos.ts'
import { migration as facts } from './0005-facts.ts'
import { migration as registry } from './0006-registry.ts'
import { migration as iamMore } from './0007-iam-more.ts'
import { migration as advisories } from './0008-advisories.ts'
import { migration as libraries } from './0009-libraries.ts'
import { migration as deliveries } from './0010-deliveries.ts'
import { migration as audit } from './0011-audit.ts'
import { migration as stream } from './0011-stream.ts'
import { migration as imageContents } from './0012-image-contents.ts'
import { migration as duties } from './0013-duties.ts'
import { migration as ledger } from './0014-ledger.ts'
import { migration as walks } from './0015-walks.ts'
import { migration as quotas } from './0016-quotas.ts'
import { migration as consent } from './0018-consent.ts'
import { migration as digestUsage } from './0019-digest-usage.ts'
import { migration as refusals } from './0020-refusals.ts'
import { migration as tagsWithoutDigest } from './0021-tags-without-digest.ts'
import { migration as registrySettings } from './0022-registry-settings.ts'
import { migration as nestedIndexes } from './0023-nested-indexes.ts'
import { migration as optionalDefaultRoles } from './0024-optional-default-roles.ts'
import { migration as syncs } from './0027-syncs.ts'
import { migration as advisoryAliases } from './0028-advisory-aliases.ts'
import { migration as vendorNames } from './0030-vendor-names.ts'
import { migration as signIn } from './0031-sign-in.ts'
import { migration as scim } from './0034-scim.ts'
import { migration as sessionExternalIds } from './0035-session-external-ids.ts'
import { migration as scanning } from './0036-scanning.ts'
import { migration as scanningBackfill } from './0037-scanning-backfill.ts'
import { migration as scanningReports } from './0038-scanning-reports.ts'
import { migration as languagePackages } from './0039-language-packages.ts'
import { migration as sourceCoverage } from './0040-source-coverage.ts'
import { migration as ownGrants } from './0042-own-grants.ts'
import { migration as suppressions } from './0043-suppressions.ts'
import { migration as accessRequests } from './0044-access-requests.ts'
import { migration as jobTitles } from './0045-job-titles.ts'
import { migration as lifecycles } from './0046-lifecycles.ts'
import { migration as catalog } from './0048-catalog.ts'
import { migration as sessionBounds } from './0065-session-bounds.ts'
import { migration as listLimits } from './0067-list-limits.ts'
import { migration as scanningUpkeep } from './0068-scanning-upkeep.ts'
import { migration as imagesByContents } from './0070-images-by-contents.ts'
import { migration as riskAcceptances } from './0071-risk-acceptances.ts'
import { migration as vulnerabilityChanges } from './0072-vulnerability-changes.ts'
import { migration as spokenEcosystems } from './0073-spoken-ecosystems.ts'
import { migration as vulnerabilityRanks } from './0074-vulnerability-ranks.ts'
import { migration as scanReports } from './0075-scan-reports.ts'
import { migration as pushTokens } from './0078-push-tokens.ts'
import { migration as peopleBounds } from './0080-people-bounds.ts'
import { migration as blobTrash } from './0081-blob-trash.ts'
import { migration as historyByTime } from './0086-history-by-time.ts'
import { migration as scanReportTexts } from './0087-scan-report-texts.ts'
import { migration as scanningBounds } from './0088-scanning-bounds.ts'
import { migration as recordTexts } from './0089-record-texts.ts'
import { migration as backups } from './0091-backups.ts'
import { migration as repoRemovals } from './0092-repo-removals.ts'
import { migration as pullRules } from './0094-pull-rules.ts'
import { migration as upstreams } from './0097-upstreams.ts'
import { migration as mirrorsOnDemand } from './0098-mirrors-on-demand.ts'
import { migration as pushTokenSessions } from './0102-push-token-sessions.ts'
import { migration as retention } from './0103-retention.ts'
import { migration as requestIds } from './0106-request-ids.ts'
import { migration as quarantineIndex } from './0108-quarantine-index.ts'
import { migration as followChecks } from './0109-follow-checks.ts'
import { migration as followFetches } from './0110-follow-fetches.ts'
import { migration as lawVersions } from './0111-law-versions.ts'
import { migration as retentionPlans } from './0112-retention-plans.ts'
import { migration as ledgerLogs } from './0114-ledger-logs.ts'
import { migration as witness } from './0115-witness.ts'
import { migration as cosignatures } from './0116-cosignatures.ts'
import { migration as gates } from './0118-expand-gates.ts'
import { migration as scanners } from './0120-expand-scanners.ts'
import { migration as statements } from './0121-expand-statements.ts'
import { migration as witnessAnswers } from './0122-expand-witness-answers.ts'
import { migration as pins } from './0123-expand-pins.ts'
import { migration as lawVersionsRaised } from './0124-expand-law-versions.ts'
import { migration as behind } from './0126-behind.ts'
import { migration as scanningWeights } from './0127-expand-scanning-weights.ts'
import { migration as madeRepos } from './0128-expand-made-repos.ts'
import { migration as whatIsCounted } from './0129-expand-what-is-counted.ts'
import { migration as morePins } from './0131-expand-more-pins.ts'
import { migration as openFindings } from './0132-expand-open-findings.ts'
import { migration as tagParts } from './0133-expand-tag-parts.ts'
import { migration as signers } from './0134-expand-signers.ts'
import { migration as toldHistories } from './0138-expand-told-histories.ts'
import { migration as storedCheckpoints } from './0140-expand-stored-checkpoints.ts'
import { migration as deliveryLanes } from './0141-expand-delivery-lanes.ts'
import { migration as eventsBySubject } from './0142-expand-events-by-subject.ts'
import { migration as envelopedSboms } from './0144-expand-enveloped-sboms.ts'
import { migration as scimEmails } from './0146-expand-scim-emails.ts'
import { migration as gateSeverities } from './0147-expand-gate-severities.ts'
import { migration as planUpdateTimes } from './0148-expand-plan-update-times.ts'
import { migration as scimGroups } from './0149-expand-scim-groups.ts'
import { migration as imagesWithoutPackages } from './0150-expand-images-without-packages.ts'
import { migration as listOrders } from './0151-expand-list-orders.ts'
import { migration as sessionGroupRoles } from './0152-expand-session-group-roles.ts'
import { migration as emailDomains } from './0153-expand-email-domains.ts'
import { migration as listEcosystems } from './0154-expand-list-ecosystems.ts'
import { migration as search } from './0156-expand-search.ts'
import { migration as searchFilled } from './0157-backfill-search.ts'
import { migration as tagRestores } from './0160-expand-tag-restores.ts'
import { migration as auditNames } from './0162-expand-audit-names.ts'

/** In the order in which they are applied. A released one is never edited. */
export const migrations: readonly Migration[] = [
  lists,
  iam,
  events,
  repos,
  facts,
  registry,
  iamMore,
  advisories,
  libraries,
  deliveries,
  audit,
  stream,
  imageContents,
  duties,
  ledger,
  walks,
  quotas,
  consent,
  digestUsage,
  refusals,
  tagsWithoutDigest,
  registrySettings,
  nestedIndexes,
  optionalDefaultRoles,
  syncs,
  advisoryAliases,
  vendorNames,
  signIn,
  scim,
  sessionExternalIds,
  scanning,
  scanningBackfill,
  scanningReports,
  languagePackages,
  sourceCoverage,
  ownGrants,
  suppressions,
  accessRequests,
  jobTitles,
  lifecycles,
  catalog,
  sessionBounds,
  listLimits,
  scanningUpkeep,
  imagesByContents,
  riskAcceptances,
  vulnerabilityChanges,
  spokenEcosystems,
  vulnerabilityRanks,
  scanReports,
  pushTokens,
  peopleBounds,
  blobTrash,
  historyByTime,
  scanReportTexts,
  scanningBounds,
  recordTexts,
  backups,
  repoRemovals,
  pullRules,
  upstreams,
  mirrorsOnDemand,
  pushTokenSessions,
  retention,
  requestIds,
  quarantineIndex,
  followChecks,
  followFetches,
  lawVersions,
  retentionPlans,
  ledgerLogs,
  witness,
  cosignatures,
  gates,
  scanners,
  statements,
  witnessAnswers,
  pins,
  lawVersionsRaised,
  behind,
  scanningWeights,
  madeRepos,
  whatIsCounted,
  morePins,
  openFindings,
  tagParts,
  signers,
  toldHistories,
  storedCheckpoints,
  deliveryLanes,
  eventsBySubject,
  envelopedSboms,
  scimEmails,
  gateSeverities,
  planUpdateTimes,
  scimGroups,
  imagesWithoutPackages,
  listOrders,
  sessionGroupRoles,
  emailDomains,
  listEcosystems,
  search,
  searchFilled,
  tagRestores,
  auditNames,
]
