// Reads rpm databases in SQLite format together with the logs beside them.
import type { Found, Gap } from '../../packages.ts'
import { readRpmDatabase } from './rpm-database.ts'
import { readSqliteLog } from './sqlite-log.ts'

const ends = { log: '-wal', journal: '-journal' }
/** Number of bytes at the start of a journal that show if SQLite has to apply the journal. */
const journalHead = 8

/** Number of bytes that have to be stored of a file with this path and size. */
export function storedBytes(path: string, size: number): number {
  return path.endsWith(ends.journal) ? Math.min(size, journalHead) : size
}

/** Reads each database with its committed transactions. The keys of the files are their paths. */
export async function readSqliteDatabases(files: ReadonlyMap<string, Buffer>): Promise<[path: string, Found][]> {
  const found: [path: string, Found][] = []
  for (const [path, bytes] of files) {
    if (path.endsWith(ends.journal)) found.push(...gapOf(path, journalProblem(bytes)))
    else if (path.endsWith(ends.log)) {
      const isAlone = bytes.length > 0 && !files.has(path.slice(0, -ends.log.length))
      found.push(...gapOf(path, isAlone ? 'the write-ahead log has no rpm database that could be read' : undefined))
    } else {
      const written = files.get(`${path}${ends.log}`)
      const log = written && written.length > 0 ? readSqliteLog(written) : undefined
      found.push([path, await readRpmDatabase(path, bytes, log)], ...gapOf(`${path}${ends.log}`, log?.damage))
    }
  }
  return found
}

/** SQLite clears the start of a journal, or the whole journal, when a transaction ends. */
function journalProblem(bytes: Buffer): string | undefined {
  if (bytes.length === 0 || bytes[0] === 0) return undefined
  return 'the rpm database has a rollback journal, which shows that a transaction was interrupted'
}

function gapOf(path: string, message: string | undefined): [path: string, Found][] {
  const gap = (text: string): Gap => ({ path, reason: 'DAMAGED', message: text })
  return message === undefined ? [] : [[path, { packages: [], gaps: [gap(message)] }]]
}
