import type { Resource } from '#lib/resource.ts'
import { imageType } from './images/images.model.ts'
import { removalType } from './repos/removals.model.ts'
import { repoType } from './repos/repos.model.ts'
import { tagHistoryType } from './tags/tag-history.model.ts'
import { everyShape, tagType, visibleShapes } from './tags/tags.model.ts'

export const resources: readonly Resource[] = [
  {
    type: repoType,
    table: 'repos',
    kinds: ['repos'],
    // A repository that is being removed keeps a row.
    listedBy: 'ledger_id',
    uid: 'place',
    groupDeletion: 'blocks',
    // Missing paths are not cached, and repositories keep their names.
    clears: { paths: ['delete'], tags: ['delete'], manifests: ['delete'], views: ['delete'] },
  },
  // The repository is hidden by an update of its row. Clearing caches on updates would clear them with each changed description.
  {
    type: removalType,
    table: 'repo_removals',
    kinds: ['repo_removals'],
    uid: 'none',
    groupDeletion: 'blocks',
    clears: { paths: ['insert'], tags: ['insert'], manifests: ['insert'], views: ['insert'] },
  },
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
    // Content of a digest never changes, so a push invalidates only cached results of views.
    clears: { manifests: ['delete'], views: ['insert', 'delete'] },
  },
]
