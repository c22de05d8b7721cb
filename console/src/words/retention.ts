// Texts of retention: policies, tag protection rules, deletion plans, legal holds and quarantine.
import { counted, numbers } from './format.ts'

const policies = {
  retentionText:
    'A retention policy guarantees how long a digest is kept after its tag is updated or deleted. Before that date, only a forced deletion with a reason can delete the digest. The date can only be extended.',
  retentionPolicies: 'Retention policies',
  noRetentionPolicies: 'There are no retention policies yet. Create one to guarantee how long images are kept.',
  newRetentionPolicy: 'New retention policy',
  keeps: 'Keeps',
  keepDaysAfter: 'Days to keep a digest after its tag is updated or deleted',
  keepLast: 'Number of latest digests of the tags to keep, whatever their age',
  untaggedDays: 'Days to keep a manifest that never had a tag',
  keepForever: 'Keep forever',
  keepsForever: 'forever',
  keepsDays: (days: number) => `${counted(days, 'day')} after the tag is updated or deleted`,
  keepsLast: (count: number) => (count === 1 ? 'the latest digest' : `the latest ${counted(count, 'digest')}`),
  keepsUntagged: (days: number) => `manifests that never had a tag, for ${counted(days, 'day')}`,
  deleteRetentionText:
    'After the deletion, the policy sets no new retention dates. Dates that it has already set stay.',
}

const protection = {
  tagRules: 'Tag protection rules',
  noTagRules: 'There are no tag protection rules yet. Users with push permission can update every tag.',
  newTagRule: 'New tag protection rule',
  protection: 'Protection',
  immutable: 'Immutable',
  onlyBy: 'updates only by',
  keepListed: 'Protect the images of each platform while a tag points to their index',
  onlyUpdatedBy: 'Only these identities can create, update or delete the tags',
  deleteTagRuleText: 'After the deletion, users with push permission can update these tags again.',
}

const plans = {
  plans: 'Deletion plans',
  plansText:
    'A retention policy alone deletes nothing. A plan lists the manifests that policies no longer keep. Read the plan, then apply it to delete them. A plan expires after a week.',
  noPlans: 'There are no deletion plans. To see what can be deleted, create one. Creating a plan deletes nothing.',
  noSuchPlan: 'This plan no longer exists. It has expired, or a newer plan for the same scope has replaced it.',
  createPlan: 'Create plan',
  planStates: {
    STATE_UNSPECIFIED: 'unknown',
    PLANNING: 'being created',
    READY: 'ready for review',
    APPLYING: 'being applied',
    APPLIED: 'applied',
  },
  deletes: 'Deletes',
  wouldDelete: 'Would delete (policies in dry run)',
  manifestsOf: (count: number, size: string) => (count === 0 ? 'nothing' : `${counted(count, 'manifest')} of ${size}`),
  deletedAndSkipped: (deleted: number, skipped: number) => `${numbers(deleted)} deleted, ${numbers(skipped)} skipped`,
  applyPlan: 'Apply',
  applyPlanOf: (scope: string) => `Apply the deletion plan of ${scope}`,
  applyPlanText: (amount: string) =>
    `This deletes ${amount} permanently. Before that, the server checks each manifest again. It skips a manifest that must be kept because of a change since the plan was made.`,
  plannedDeletions: 'Planned deletions',
  planCut: 'The plan has reached the limit of 100,000 manifests. To delete the rest, create another plan afterwards.',
  nothingPlanned: 'The plan deletes nothing: all manifests are kept, or no retention policy applies to them.',
  deletionReasons: {
    WHY_UNSPECIFIED: 'unknown',
    EXPIRED: 'the retention date has passed:',
    NOT_LAST: 'no longer among the latest digests of its tags',
    PART: 'never had a tag, and belongs to a manifest that is deleted:',
  },
  deletionResults: {
    OUTCOME_UNSPECIFIED: 'not deleted yet',
    DELETED: 'deleted',
    KEPT: 'kept',
    GONE: 'already deleted before',
  },
  dryRunDeletion: 'dry run: will not be deleted',
}

const holds = {
  holds: 'Legal holds',
  heldDigestOrTags: 'Digest or tags',
  noHolds: 'There are no legal holds.',
  newHold: 'New legal hold',
  hold: 'Hold',
  holdTags: 'Or all current and former digests of these tags (one per line)',
  holdTagsHint: 'Use * for any characters.',
  release: 'Release',
  releaseHoldText:
    'After the release, the images are kept only if a retention policy or a tag protection rule keeps them.',
  active: 'active',
}

const quarantines = {
  quarantined: 'Quarantined images',
  noQuarantined: 'There are no quarantined images.',
  newQuarantine: 'New quarantine',
  quarantine: 'Quarantine',
  quarantineHint: 'Clients see this reason when their pull is denied.',
  releaseQuarantineText: 'The image can be pulled again after the release.',
}

export const retentionWords = { ...policies, ...protection, ...plans, ...holds, ...quarantines }
