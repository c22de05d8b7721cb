import type { Resource } from '#lib/resource.ts'
import { imageType } from './images/images.model.ts'
import { deletedRepoType } from './ledgers/deleted-repos.model.ts'
import { repoType } from './repos/repos.model.ts'
import { everyShape, tagType, visibleShapes } from './tags/tags.model.ts'

export const resources: readonly Resource[] = [
  {
    type: repoType,
    table: 'repos',
    kinds: ['repos'],
    uid: 'place',
    groupDeletion: 'blocks',
    // A path that is not there is not remembered, and a repo keeps its name.
    clears: { paths: ['delete'], manifests: ['delete'] },
  },
  // Not a place any more, since nothing can be below it.
  { type: deletedRepoType, table: 'deleted_repos', kinds: ['deleted_repos'], uid: 'none', groupDeletion: 'stays' },
  {
    type: tagType,
    table: 'tags',
    kinds: visibleShapes(everyShape).map((shape) => `tags.${shape}`),
    uid: 'place',
    groupDeletion: 'apart',
  },
  {
    type: imageType,
    table: 'manifests',
    kinds: [],
    uid: 'none',
    groupDeletion: 'apart',
    // A digest stands for one content, so a push changes nothing that is remembered.
    clears: { manifests: ['delete'] },
  },
]
