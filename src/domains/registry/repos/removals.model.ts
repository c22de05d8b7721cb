import type { Fields } from '#lib/fields.ts'

/** Deleted repository that is no longer visible, while its rows are removed in batches. */
export type Removal = {
  /** Number of the repository. */
  id: number
  /** Former uid of the repository. */
  uid: string
  ledger: number
  actor: string
  /** Time of the deletions of all its tags in the tag history. */
  deleteTime: string
}

export const removalType = 'registry.pinfold.dev/RepoRemoval'

/** A repository with more rows of one kind is removed in batches. Others are removed in one transaction. */
export const mostAtOnce = 500

/** Rows in one transaction, for which other writers wait. A tag takes up to 4 ms, and up to 10 ms in PostgreSQL. */
export const sliceSize = 5

/** Limit for the removal of all rows in one transaction. */
export const allRows = Number.POSITIVE_INFINITY

/** Chunks of one upload per batch. Two statements delete any number of them. */
export const piecesAtOnce = 100

/** Deleted repository whose tag history still exists. */
export type DeletedRepo = {
  uid: string
  /** Former number of the repository, and the number of its tag history. */
  id: number
  ledger: number
  /** Path in names when it was deleted, `acme/team/app`. */
  path: string
  /** Uid of the actor that deleted it. */
  actor: string
  createTime: string
  deleteTime: string
}

export const deletedRepoType = 'registry.pinfold.dev/DeletedRepo'

/** Fields for the order of a list. */
export const deletedRepoFields = {
  deleteTime: { column: 'delete_time', sort: true },
} as const satisfies Fields<DeletedRepo>

/** An empty path matches any. */
export type DeletedRepoFilter = { path: string }
