import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeFolder } from '#lib/files/folders.ts'
import type { Db } from './sql.ts'

/** Opens PostgreSQL when `database` is a postgres:// URL, else the embedded store in `file`, which only we may read. */
export async function openDb(options: {
  database: string
  file: string
  checkpoints?: 'server' | 'external'
}): Promise<Db> {
  // Each is loaded when it is the one: commands are short.
  if (options.database) return (await import('./postgres/postgres.ts')).openPostgres(options.database)
  makeFolder(dirname(options.file))
  // SQLite gives the files beside it, the log above all, the rights of the database.
  await (await open(options.file, 'a', 0o600)).close()
  return (await import('./sqlite/sqlite.ts')).openSqlite(options.file, options.checkpoints)
}

type Urls = { database: string; databaseDirect: string }

/** True if a pooler is between us and the database. Throws if it is a pooler that we cannot use. */
export async function checkPooler({ database }: Urls): Promise<boolean> {
  if (database === '' || !(await import('./postgres/postgres-config.ts')).isPooledUrl(database)) return false
  await (await import('./postgres/pooler.ts')).requireNamedStatements(database)
  return true
}

/** Opens the database for work that needs a session, which a pooler does not keep. */
export async function openDirect({ database, databaseDirect }: Urls): Promise<Db> {
  const { directUrl } = await import('./postgres/pooler.ts')
  return openDb({ database: await directUrl(database, databaseDirect), file: '' })
}
