import type { Resource } from '#lib/resource.ts'
import { followType } from './follows/follows.model.ts'
import { upstreamType } from './follows/upstreams.model.ts'
import { imageType } from './images/images.model.ts'
import { deletedRepoType } from './ledgers/deleted-repos.model.ts'
import { ledgerLogType } from './proofs/logs.model.ts'
import { pullRuleExceptionType, pullRuleType } from './pull-rules/pull-rules.model.ts'
import { removalType } from './repos/removals.model.ts'
import { repoType } from './repos/repos.model.ts'
import { retentionPlanType } from './retention/plans.model.ts'
import { holdType, quarantineType, retentionRuleType, tagRuleType } from './retention/retention.model.ts'
import { tagHistoryType } from './tags/tag-history.model.ts'
import { everyShape, tagType, visibleShapes } from './tags/tags.model.ts'

const laws = ['insert', 'update', 'delete'] as const
const law = { kinds: [], uid: 'none', groupDeletion: 'goes', clears: { laws } } as const

export const resources: readonly Resource[] = [
  {
    type: repoType,
    table: 'repos',
    kinds: ['repos'],
    // A row is left of one that is being removed.
    listedBy: 'ledger_id',
    uid: 'place',
    groupDeletion: 'blocks',
    // A path that is not there is not remembered, and a repo keeps its name.
    clears: { paths: ['delete'], tags: ['delete'], manifests: ['delete'], views: ['delete'] },
  },
  // Its repo is hidden by an update, which would clear the caches with each description that is changed.
  {
    type: removalType,
    table: 'repo_removals',
    kinds: ['repo_removals'],
    uid: 'none',
    groupDeletion: 'blocks',
    clears: { paths: ['insert'], tags: ['insert'], manifests: ['insert'], views: ['insert'] },
  },
  // Not a place any more, since nothing can be below it.
  { type: deletedRepoType, table: 'deleted_repos', kinds: ['deleted_repos'], uid: 'none', groupDeletion: 'stays' },
  // What was signed for an organisation outlives it.
  { type: ledgerLogType, table: 'ledger_logs', kinds: [], uid: 'none', groupDeletion: 'stays' },
  {
    type: tagType,
    table: 'tags',
    kinds: visibleShapes(everyShape).map((shape) => `tags.${shape}`),
    uid: 'place',
    groupDeletion: 'apart',
    clears: { tags: ['insert', 'update', 'delete'] },
  },
  {
    type: tagHistoryType,
    table: 'tag_history',
    kinds: [],
    uid: 'none',
    groupDeletion: 'stays',
    clears: { views: ['insert', 'delete'] },
  },
  {
    type: imageType,
    table: 'manifests',
    kinds: [],
    uid: 'none',
    groupDeletion: 'apart',
    // A digest stands for one content, so a push changes nothing that is remembered, but what a tag may stand for.
    clears: { manifests: ['delete'], views: ['insert', 'delete'] },
  },
  { type: upstreamType, table: 'upstreams', kinds: ['upstreams'], uid: 'place', groupDeletion: 'blocks' },
  // It goes with its repo. What it says of the repo is remembered with the path.
  {
    type: followType,
    table: 'follows',
    kinds: [],
    uid: 'none',
    groupDeletion: 'apart',
    clears: { paths: ['insert', 'update', 'delete'] },
  },
  {
    type: pullRuleType,
    table: 'pull_rules',
    kinds: [],
    uid: 'none',
    groupDeletion: 'goes',
    clears: { pullRules: ['insert', 'update', 'delete'] },
  },
  {
    type: pullRuleExceptionType,
    table: 'pull_rule_exceptions',
    kinds: [],
    uid: 'none',
    groupDeletion: 'goes',
    clears: { pullRules: ['insert', 'update', 'delete'] },
  },
  { ...law, type: retentionRuleType, table: 'retention_rules' },
  { ...law, type: tagRuleType, table: 'tag_rules' },
  { type: retentionPlanType, table: 'retention_plans', kinds: [], uid: 'none', groupDeletion: 'goes' },
  { ...law, type: holdType, table: 'holds', groupDeletion: 'released' },
  { ...law, type: quarantineType, table: 'quarantined', groupDeletion: 'released', clears: { laws, views: laws } },
]
