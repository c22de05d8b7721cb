// SQLite databases with a write-ahead log, written by SQLite itself.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export type LoggedDatabase = { bytes: Buffer; log: Buffer }

/** Database with a table of packages. `write` runs without checkpoints, so that its changes are only in the log. */
export function loggedDatabase(write: (database: DatabaseSync) => void, pageSize = 4096): LoggedDatabase {
  return inFolder((folder) => {
    const path = join(folder, 'rpmdb.sqlite')
    const database = new DatabaseSync(path)
    database.exec(`PRAGMA page_size = ${pageSize}; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0`)
    database.exec("CREATE TABLE 'Packages' (hnum INTEGER PRIMARY KEY AUTOINCREMENT, blob BLOB NOT NULL)")
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    write(database)
    const written = { bytes: readFileSync(path), log: readFileSync(`${path}-wal`) }
    database.close()
    return written
  })
}

export function insertPackages(database: DatabaseSync, blobs: readonly Buffer[]): void {
  const insert = database.prepare('INSERT INTO Packages (blob) VALUES (?)')
  database.exec('BEGIN')
  for (const blob of blobs) insert.run(blob)
  database.exec('COMMIT')
}

function inFolder<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-rpm-'))
  try {
    return work(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
