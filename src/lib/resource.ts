/** What can happen to the rows of a table. */
export type Verb = 'insert' | 'update' | 'delete'

/** What is remembered of rows for a moment, and forgotten when they change. */
export type CacheName =
  | 'grants'
  | 'paths'
  | 'tags'
  | 'views'
  | 'manifests'
  | 'sessions'
  | 'pushTokens'
  | 'pullRules'
  | 'laws'
  | 'gates'

/** One row for each thing that a domain keeps, from which follows whatever has to know of all of them. */
export type Resource = {
  /** As errors name it. */
  type: string
  table: string
  /** The lists and totals that it is in (`list_keys`, `list_counts`); none where its own table is read. */
  kinds: readonly string[]
  /** The column without which a row of its table is in no list; absent where all rows are. */
  listedBy?: string
  /** What its uid is: a place of its own in the hierarchy, that of its group, or neither. */
  uid: 'place' | 'group' | 'none'
  /**
   * What it means for the deletion of its group: it has to be gone before, it goes with the group, or it stays; `apart`
   * for what belongs to no group, or to something else that has to be gone. What is in force as long as its `release_time`
   * is empty has to be released, and then it goes.
   */
  groupDeletion: 'blocks' | 'released' | 'goes' | 'stays' | 'apart'
  /** The caches that hold something of it, with the changes after which that may be wrong. */
  clears?: Readonly<Partial<Record<CacheName, readonly Verb[]>>>
}
