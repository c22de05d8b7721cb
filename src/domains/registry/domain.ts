import type { Domain } from '#domain.ts'
import { BlobControlService } from '#gen/pinfold/control/registry/v1/blobs_pb.ts'
import { LifecyclesService } from '#gen/pinfold/control/registry/v1/lifecycles_pb.ts'
import { RepoUsageService } from '#gen/pinfold/control/registry/v1/repo_usage_pb.ts'
import { TagHistoryService } from '#gen/pinfold/control/registry/v1/tag_history_pb.ts'
import { TagRestoresService } from '#gen/pinfold/control/registry/v1/tag_restores_pb.ts'
import { TagSearchService } from '#gen/pinfold/control/registry/v1/tag_search_pb.ts'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { ImagesService } from '#gen/pinfold/registry/v2/images_pb.ts'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { TagsService } from '#gen/pinfold/registry/v2/tags_pb.ts'
import { collectBlobs, scheduleCollections } from './blobs/collect-blobs.job.ts'
import { collection } from './blobs/collection.control.ts'
import { deletionsV1 } from './deletions/deletions.v1.ts'
import { deletions } from './deletions/deletions.v2.ts'
import { removeRepos } from './deletions/removals.job.ts'
import { deploymentsV1 } from './deployments/deployments.v1.ts'
import { imagesV1 } from './images/images.v1.ts'
import { images } from './images/images.v2.ts'
import { readAgain, readImages } from './images/read-images.job.ts'
import { judgeTags } from './lifecycles/eol-tags.job.ts'
import { lifecycles } from './lifecycles/lifecycles.control.ts'
import { lifecyclesV1 } from './lifecycles/lifecycles.v1.ts'
import { openRegistry } from './open-parts.ts'
import { registryHooks } from './registry.hooks.ts'
import { repoUsages } from './repos/repo-usage.control.ts'
import { repoEventsV1, reposV1 } from './repos/repos.v1.ts'
import { repoEvents, repos } from './repos/repos.v2.ts'
import { resources } from './resources.ts'
import { settingsV1 } from './settings/settings.v1.ts'
import { indexTags } from './tags/index-tags.job.ts'
import { tagHistory } from './tags/tag-history.control.ts'
import { tagRestoreEvents, tagRestores } from './tags/tag-restores.control.ts'
import { tagSearch } from './tags/tag-search.control.ts'
import { tagEventsV1, tagsV1 } from './tags/tags.v1.ts'
import { tagEvents, tags } from './tags/tags.v2.ts'
import { sweepUsage, writeUsage } from './usage/digest-usage.job.ts'

export const registry: Domain = {
  parts: openRegistry,
  services: [
    { desc: ReposService, handlers: { ...repos, ...deletions } },
    { desc: RepoUsageService, handlers: repoUsages },
    { desc: TagsService, handlers: tags },
    { desc: TagHistoryService, handlers: tagHistory },
    { desc: TagRestoresService, handlers: tagRestores },
    { desc: TagSearchService, handlers: tagSearch },
    { desc: BlobControlService, handlers: collection },
    { desc: LifecyclesService, handlers: lifecycles },
    { desc: ImagesService, handlers: images },
    {
      desc: Registry,
      handlers: {
        ...reposV1,
        ...deletionsV1,
        ...tagsV1,
        ...imagesV1,
        ...lifecyclesV1,
        ...settingsV1,
        ...deploymentsV1,
      },
    },
  ],
  eventBodies: [...repoEvents, ...repoEventsV1, ...tagEvents, ...tagEventsV1, ...tagRestoreEvents],
  resources,
  hooks: registryHooks,
  jobs: [
    readImages,
    readAgain,
    writeUsage,
    scheduleCollections,
    collectBlobs,
    removeRepos,
    judgeTags,
    indexTags,
    sweepUsage,
  ],
}
