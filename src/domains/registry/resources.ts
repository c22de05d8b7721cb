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
]
