import type { DomainHooks } from '#hooks.ts'
import { saveSync, validateSync } from './copies/syncs.service.ts'
import { deleteSync } from './copies/syncs.store.ts'
import { requireOwnTags } from './follows/follows.service.ts'
import { deleteFollow } from './follows/follows.store.ts'

export const mirrorsHooks = (): DomainHooks => ({
  mayChangeTags: requireOwnTags,
  sourceChanging: validateSync,
  sourceChanged: saveSync,

  async repoHidden(tx, { uid }) {
    await deleteSync(tx, uid)
    await deleteFollow(tx, uid)
  },
})
