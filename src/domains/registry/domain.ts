import type { Service } from '#app.ts'
import { BlobControlService } from '#gen/pinfold/control/registry/v1/blobs_pb.ts'
import { DigestsService } from '#gen/pinfold/control/registry/v1/digests_pb.ts'
import { FollowsService } from '#gen/pinfold/control/registry/v1/follows_pb.ts'
import { LedgersService } from '#gen/pinfold/control/registry/v1/ledgers_pb.ts'
import { LifecyclesService } from '#gen/pinfold/control/registry/v1/lifecycles_pb.ts'
import { PullRulesService } from '#gen/pinfold/control/registry/v1/pull_rules_pb.ts'
import { RepoUsageService } from '#gen/pinfold/control/registry/v1/repo_usage_pb.ts'
import { RetentionService } from '#gen/pinfold/control/registry/v1/retention_pb.ts'
import { RetentionPlansService } from '#gen/pinfold/control/registry/v1/retention_plans_pb.ts'
import { TagHistoryService } from '#gen/pinfold/control/registry/v1/tag_history_pb.ts'
import { TagSearchService } from '#gen/pinfold/control/registry/v1/tag_search_pb.ts'
import { UpstreamsService } from '#gen/pinfold/control/registry/v1/upstreams_pb.ts'
import { ViewsService } from '#gen/pinfold/control/registry/v1/views_pb.ts'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { ImagesService } from '#gen/pinfold/registry/v2/images_pb.ts'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { TagsService } from '#gen/pinfold/registry/v2/tags_pb.ts'
import type { EventBody } from '#lib/events/event-body.ts'
import { collection } from './blobs/collection.control.ts'
import { deploymentsV1 } from './deployments/deployments.v1.ts'
import { digests } from './digests/digests.control.ts'
import { followEvents, follows } from './follows/follows.control.ts'
import { upstreamEvents, upstreams } from './follows/upstreams.control.ts'
import { imagesV1 } from './images/images.v1.ts'
import { images } from './images/images.v2.ts'
import { vulnReportV1 } from './images/vuln-report.v1.ts'
import { ledgerEvents, ledgers } from './ledgers/ledgers.control.ts'
import { lifecycles } from './lifecycles/lifecycles.control.ts'
import { lifecyclesV1 } from './lifecycles/lifecycles.v1.ts'
import { pullRuleEvents, pullRules } from './pull-rules/pull-rules.control.ts'
import { repoUsages } from './repos/repo-usage.control.ts'
import { repoEventsV1, reposV1 } from './repos/repos.v1.ts'
import { repoEvents, repos } from './repos/repos.v2.ts'
import { retentionPlanEvents, retentionPlans } from './retention/plans.control.ts'
import { retention, retentionEvents } from './retention/retention.control.ts'
import { settingsV1 } from './settings/settings.v1.ts'
import { syncsV1 } from './syncs/syncs.v1.ts'
import { tagHistory } from './tags/tag-history.control.ts'
import { tagSearch } from './tags/tag-search.control.ts'
import { tagEventsV1, tagsV1 } from './tags/tags.v1.ts'
import { tagEvents, tags } from './tags/tags.v2.ts'
import { views } from './views/views.control.ts'

export const services: readonly Service[] = [
  { desc: ReposService, handlers: repos },
  { desc: RepoUsageService, handlers: repoUsages },
  { desc: TagsService, handlers: tags },
  { desc: TagHistoryService, handlers: tagHistory },
  { desc: TagSearchService, handlers: tagSearch },
  { desc: RetentionService, handlers: retention },
  { desc: RetentionPlansService, handlers: retentionPlans },
  { desc: LedgersService, handlers: ledgers },
  { desc: PullRulesService, handlers: pullRules },
  { desc: ViewsService, handlers: views },
  { desc: DigestsService, handlers: digests },
  { desc: BlobControlService, handlers: collection },
  { desc: UpstreamsService, handlers: upstreams },
  { desc: FollowsService, handlers: follows },
  { desc: LifecyclesService, handlers: lifecycles },
  { desc: ImagesService, handlers: images },
  {
    desc: Registry,
    handlers: {
      ...syncsV1,
      ...reposV1,
      ...tagsV1,
      ...imagesV1,
      ...lifecyclesV1,
      ...vulnReportV1,
      ...settingsV1,
      ...deploymentsV1,
    },
  },
]

export const eventBodies: readonly EventBody[] = [
  ...repoEvents,
  ...repoEventsV1,
  ...tagEvents,
  ...tagEventsV1,
  ...ledgerEvents,
  ...retentionEvents,
  ...retentionPlanEvents,
  ...upstreamEvents,
  ...followEvents,
  ...pullRuleEvents,
]
