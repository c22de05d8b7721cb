import { type Reader, sql, type Tx } from './sql.ts'

/**
 * What one process leaves for another to know: the URL that the server was last started with, and where it listens, in which
 * network; the fingerprint of the master key; which database this is, and which folder has its blobs; when it was last
 * restored; of which version the built-in roles are; up to which number it is
 * known which repos have many tags.
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

export async function readFact(reader: Reader, name: Fact): Promise<string | undefined> {
  return (await reader.get<{ value: string }>(sql`SELECT value FROM facts WHERE name = ${name}`))?.value
}

export async function writeFact(tx: Tx, name: Fact, value: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO facts (name, value) VALUES (${name}, ${value})
        ON CONFLICT (name) DO UPDATE SET value = excluded.value`)
}

/** Writes a fact unless it is known; answers with what is known then. */
export async function keepFact(tx: Tx, name: Fact, value: string): Promise<string> {
  await tx.run(sql`INSERT INTO facts (name, value) VALUES (${name}, ${value}) ON CONFLICT (name) DO NOTHING`)
  return (await readFact(tx, name))!
}

export async function removeFact(tx: Tx, name: Fact): Promise<void> {
  await tx.run(sql`DELETE FROM facts WHERE name = ${name}`)
}
