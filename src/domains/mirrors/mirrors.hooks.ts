import type { DomainHooks } from '#hooks.ts'
import { deleteSync } from './copies/syncs.store.ts'
import { deleteFollow } from './follows/follows.store.ts'

export const mirrorsHooks = (): DomainHooks => ({
  async repoHidden(tx, { uid }) {
    await deleteSync(tx, uid)
    await deleteFollow(tx, uid)
  },
})
