/** Changes of the rows of a table. */
export type Verb = 'insert' | 'update' | 'delete'

/** In-memory caches of rows, which are cleared when the rows change. */
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

/** Properties of a table of a domain, from which all generic handling of tables follows. */
export type Resource = {
  /** As errors name it. */
  type: string
  table: string
  /** The lists and totals that it is in (`list_keys`, `list_counts`); none where its own table is read. */
  kinds: readonly string[]
  /** The column without which a row of its table is in no list; absent where all rows are. */
  listedBy?: string
  /** Kind of uid: a path of its own in the hierarchy, the path of its group, or neither. */
  uid: 'place' | 'group' | 'none'
  /**
   * Effect of the resource on the deletion of its group. `blocks`: it has to be deleted before. `released`: it is in force while
   * its `release_time` is empty, has to be released, and is then deleted with the group. `goes`: it is deleted with the group.
   * `stays`: it is kept. `apart`: it belongs to no group, or to another resource that has to be deleted.
   */
  groupDeletion: 'blocks' | 'released' | 'goes' | 'stays' | 'apart'
  /** The caches that hold something of it, with the changes after which that may be wrong. */
  clears?: Readonly<Partial<Record<CacheName, readonly Verb[]>>>
}
