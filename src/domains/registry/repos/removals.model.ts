import type { Fields } from '#lib/fields.ts'

/** Deleted repository that is no longer visible, while its rows are removed in batches. */
export type Removal = {
  /** Number of the repository. */
  id: number
  /** Former uid of the repository. */
  uid: string
  ledger: number
  actor: string
  /** Time of the deletion of all tags in the tag history. */
  deleteTime: string
}

export const removalType = 'registry.pinfold.dev/RepoRemoval'

/** Most rows of one kind that are removed in one transaction. A repository with more rows is removed in batches. */
export const mostAtOnce = 500

/**
 * Rows in one batch. Other writers wait for the transaction of the batch. A tag takes up to 4 ms, and up to 10 ms in PostgreSQL.
 */
export const sliceSize = 5

/** Limit for the removal of all rows in one transaction. */
export const allRows = Number.POSITIVE_INFINITY

/** Chunks of one upload in one batch. Two statements delete any number of chunks. */
export const piecesAtOnce = 100

/** Deleted repository whose tag history still exists. */
export type DeletedRepo = {
  uid: string
  /** Former number of the repository, and the number of its tag history. */
  id: number
  ledger: number
  /** Path, made of names, at the time of the deletion, such as `acme/team/app`. */
  path: string
  /** Uid of the actor that deleted it. */
  actor: string
  createTime: string
  deleteTime: string
}

export const deletedRepoType = 'registry.pinfold.dev/DeletedRepo'

/** Sort fields of a list of deleted repositories. */
export const deletedRepoFields = {
  deleteTime: { column: 'delete_time', sort: true },
} as const satisfies Fields<DeletedRepo>

/** Filter of a list of deleted repositories. An empty path matches every repository. */
export type DeletedRepoFilter = { path: string }
