import type { Resource } from '#lib/resource.ts'
import { followType } from './follows/follows.model.ts'
import { upstreamType } from './follows/upstreams.model.ts'

export const resources: readonly Resource[] = [
  { type: upstreamType, table: 'upstreams', kinds: ['upstreams'], uid: 'node', groupDeletion: 'blocks' },
  // Mirrors are deleted with their repository. The cache of paths also has the mode of the mirror.
  {
    type: followType,
    table: 'follows',
    kinds: [],
    uid: 'none',
    groupDeletion: 'apart',
    clears: { paths: ['insert', 'update', 'delete'] },
  },
]
