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
    // A repository that is being removed keeps its row, without this column.
    listedBy: 'ledger_id',
    uid: 'node',
    groupDeletion: 'blocks',
    // Only deletions clear the cache of paths. Missing paths are not cached, and repositories never change their names.
    clears: { paths: ['delete'], tags: ['delete'], manifests: ['delete'], views: ['delete'] },
  },
  // An update of the repository's row hides the repository. The insert into this table clears the caches. If updates of
  // repositories cleared them, each changed description would too.
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
    uid: 'node',
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
    // The content of a digest never changes, so a push invalidates only cached results of views.
    clears: { manifests: ['delete'], views: ['insert', 'delete'] },
  },
]
