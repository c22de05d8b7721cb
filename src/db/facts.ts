import { type Reader, sql, type Tx } from './sql.ts'

/**
 * Facts that one process stores for others. The last server start stores its URL, its own address, and the network of that
 * address. Facts about the data are the fingerprint of the master key and the ID of the database. Others are the ID of the blob
 * folder and the time of the last restore. Upgrades store the version of the built-in roles. They also store the numbers of the
 * last rows that were checked for many tags, and that were added to the search. The demo stores the port of its second registry.
 */
export type Fact =
  | 'url'
  | 'local_url'
  | 'local_network'
  | 'master_key'
  | 'database_id'
  | 'blob_folder_id'
  | 'restore_time'
  | 'built_in_roles'
  | 'tags_seen'
  | 'search_filled'
  | 'demo_peer'

export async function readFact(reader: Reader, name: Fact): Promise<string | undefined> {
  return (await reader.get<{ value: string }>(sql`SELECT value FROM facts WHERE name = ${name}`))?.value
}

export async function writeFact(tx: Tx, name: Fact, value: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO facts (name, value) VALUES (${name}, ${value})
        ON CONFLICT (name) DO UPDATE SET value = excluded.value`)
}

/** Stores a fact if it has no value yet. Returns the stored value. */
export async function keepFact(tx: Tx, name: Fact, value: string): Promise<string> {
  await tx.run(sql`INSERT INTO facts (name, value) VALUES (${name}, ${value}) ON CONFLICT (name) DO NOTHING`)
  return (await readFact(tx, name))!
}

export async function removeFact(tx: Tx, name: Fact): Promise<void> {
  await tx.run(sql`DELETE FROM facts WHERE name = ${name}`)
}
