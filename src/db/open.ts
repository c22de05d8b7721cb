import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { openPostgres } from './postgres/postgres.ts'
import type { Db } from './sql.ts'
import { openSqlite } from './sqlite/sqlite.ts'

/** Opens PostgreSQL when `database` is a postgres:// URL, else the embedded store in `file`, which only we may read. */
export async function openDb(options: { database: string; file: string }): Promise<Db> {
  if (options.database) return openPostgres(options.database)
  await mkdir(dirname(options.file), { recursive: true, mode: 0o700 })
  // SQLite gives the files beside it, the log above all, the rights of the database.
  await (await open(options.file, 'a', 0o600)).close()
  return openSqlite(options.file)
}
