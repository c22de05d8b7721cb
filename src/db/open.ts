import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeFolder } from '#lib/files/folders.ts'
import type { Db } from './sql.ts'

/**
 * Opens PostgreSQL if `database` is a postgres:// URL, else the SQLite database in `file`. Only the user of this process can read
 * that file.
 */
export async function openDb(options: {
  database: string
  file: string
  sqliteCheckpoints?: 'server' | 'external'
}): Promise<Db> {
  // Only the needed engine is loaded, so that commands start fast.
  if (options.database) return (await import('./postgres/postgres.ts')).openPostgres(options.database)
  makeFolder(dirname(options.file))
  // Created before SQLite opens it, since SQLite copies the file's permissions to its log.
  await (await open(options.file, 'a', 0o600)).close()
  return (await import('./sqlite/sqlite.ts')).openSqlite(options.file, options.sqliteCheckpoints)
}

type Urls = { database: string; databaseDirect: string }

/** True if the URL leads to a pooler. Throws for a pooler that does not support what we need. */
export async function checkPooler({ database }: Urls): Promise<boolean> {
  if (database === '' || !(await import('./postgres/postgres-config.ts')).isPooledUrl(database)) return false
  await (await import('./postgres/pooler.ts')).requireNamedStatements(database)
  return true
}

/** Opens the database for work that needs a session, such as migrations. A pooler keeps no sessions. */
export async function openDirect({ database, databaseDirect }: Urls): Promise<Db> {
  const { directUrl } = await import('./postgres/pooler.ts')
  return openDb({ database: await directUrl(database, databaseDirect), file: '' })
}
