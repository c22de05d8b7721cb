import type { Fields } from '#lib/fields.ts'

/** A repo that is gone, and whose ledger stays. */
export type DeletedRepo = {
  uid: string
  /** The number that it had, and that of its ledger. */
  id: number
  ledger: number
  /** Its path in names when it was deleted, `acme/team/app`. */
  path: string
  /** The uid of who deleted it. */
  actor: string
  createTime: string
  deleteTime: string
}

export const deletedRepoType = 'registry.pinfold.dev/DeletedRepo'

/** What a list can be ordered by. */
export const deletedRepoFields = {
  deleteTime: { column: 'delete_time', sort: true },
} as const satisfies Fields<DeletedRepo>

/** An empty path means any. */
export type DeletedRepoFilter = { path: string }
