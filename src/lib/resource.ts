/** Kinds of changes to the rows of a table. */
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
  | 'contentRules'
  | 'gates'

/** Properties of one table of a domain. Generic code for tables, such as lists and caches, reads them. */
export type Resource = {
  /** Name of the resource in errors. */
  type: string
  table: string
  /** Names of its lists and totals in `list_keys` and `list_counts`. Empty if its lists are read from its own table. */
  kinds: readonly string[]
  /** Column that is NULL in rows that no list contains. Undefined if lists contain all rows. */
  listedBy?: string
  /** Form of the uid: `node` is a node of the hierarchy, `group` has the path of its group, and `none` is neither. */
  uid: 'node' | 'group' | 'none'
  /**
   * Effect on the deletion of the group. `blocks`: the group cannot be deleted before this resource. `released`: the resource
   * blocks the deletion until it has a `release_time`, and is then deleted with the group. `goes`: it is deleted with the group.
   * `stays`: it is kept. `apart`: it belongs to no group, or to another resource that has to be deleted first.
   */
  groupDeletion: 'blocks' | 'released' | 'goes' | 'stays' | 'apart'
  /** Caches that contain data of this table, each with the changes after which it must be cleared. */
  clears?: Readonly<Partial<Record<CacheName, readonly Verb[]>>>
}
