import type { Reader } from '#db/sql.ts'

/** Kind of a resource that has a name. */
export type NamedKind = 'person' | 'service account' | 'group' | 'role' | 'identity provider' | 'repository' | 'webhook'

/** Name of a resource. The name of a repository or a folder does not contain its path. */
export type ResourceName = { uid: string; kind: NamedKind; name: string }

export type NamesWanted = {
  /** Organization whose members will see the names. */
  organization: string
  uids: readonly string[]
  /** Identities that made changes in the organization. Their names are visible there, also if they are not members. */
  actors: readonly string[]
}

/** Hooks of this domain, called in the transaction of a change or by a reader of the audit log. */
export type OutboxHooks = {
  /** Names of resources that members of the organization can see. All other resources are left out. */
  resourceNames(reader: Reader, wanted: NamesWanted): Promise<ResourceName[]>
}
