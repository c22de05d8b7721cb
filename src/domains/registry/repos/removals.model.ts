import type { Fields } from '#lib/fields.ts'

/** A repo that is deleted for everybody, while what it had goes in slices. */
export type Removal = {
  /** The number of the repo. */
  id: number
  /** The uid that it had. */
  uid: string
  ledger: number
  actor: string
  /** What the ledger says of the deletion of all its tags. */
  deleteTime: string
}

export const removalType = 'registry.pinfold.dev/RepoRemoval'

/** One that has more of anything is removed in slices; the rest goes with it in one transaction. */
export const mostAtOnce = 500

/** So much goes in one transaction, which other writers wait for: a tag takes up to four milliseconds, and up to ten in PostgreSQL. */
export const sliceSize = 5

/** The limit of what is removed in one transaction. */
export const allRows = Number.POSITIVE_INFINITY

/** Pieces of one upload, which go by two statements, however many they are. */
export const piecesAtOnce = 100

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

/** Fields that a list can be ordered by. */
export const deletedRepoFields = {
  deleteTime: { column: 'delete_time', sort: true },
} as const satisfies Fields<DeletedRepo>

/** An empty path means any. */
export type DeletedRepoFilter = { path: string }
