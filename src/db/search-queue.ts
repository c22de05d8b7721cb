// Queue of rows whose names are to be added to the search index, or removed from it. A transaction that changes a name only inserts
// a row here, with a number of its own. It reads nothing, so it cannot conflict with any other transaction. A background job then
// writes the index (`domains/search`).
import { sql, type Tx } from './sql.ts'

/** Kinds of names in the index, as stored. `persons` are role bindings of people, found by the name and email of the person. */
export const searchKinds = { organizations: 1, folders: 2, repos: 3, identities: 4, persons: 5, packages: 6 } as const
export type SearchKind = (typeof searchKinds)[keyof typeof searchKinds]

/** Tables whose rows the search finds, as stored. `lists` are package lists. */
export const searchSources = { groups: 1, repos: 2, identities: 3, bindings: 4, tags: 5, lists: 6 } as const
export type SearchSource = keyof typeof searchSources

/**
 * Queues a row for the search index. Call it in the transaction that adds, renames or deletes the row. `organization` is the uid of
 * the organization that has the package list, and empty for rows of other tables.
 */
export async function queueForSearch(tx: Tx, source: SearchSource, row: number, organization = ''): Promise<void> {
  await tx.run(sql`
    INSERT INTO search_queue (source, row_id, organization) VALUES (${searchSources[source]}, ${row}, ${organization})`)
}
