/** PostgreSQL's error code for a write on a read-only server, such as a standby or a server in recovery. */
export const readOnly = '25006'

/** PostgreSQL's error code for a write on a full disk. */
export const diskFull = '53100'
const noMemory = '53200'
/** SQLite's primary result code `SQLITE_FULL`. */
const sqliteFull = 13

// Error codes of Node and PostgreSQL for a database that is temporarily unavailable.
const codes = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'],
  // shutdown, crash, startup, no free connection slot, a full disk, no memory, an error of the disk
  ...['57P01', '57P02', '57P03', '53300', diskFull, noMemory, '53000', '58030'],
  readOnly,
  // time limit of a statement, of a transaction, or of the time between two statements
  ...['57014', '25P03', '25P04', '57P05'],
  // conflict with other writers after the last retry
  ...['40001', '40P01'],
])

/** A failure to reach a database server that has stopped because its disk was full. Has the code of the failure. */
export class StoppedByFullDisk extends Error {
  override name = 'StoppedByFullDisk'
  readonly code: unknown
  constructor(cause: unknown) {
    super('the database has stopped, because its disk is full', { cause })
    this.code = (cause as { code?: unknown }).code
  }
}

// SQLite's primary result codes `SQLITE_BUSY`, `SQLITE_IOERR` and `SQLITE_FULL`.
const results = new Set([5, 10, sqliteFull])

/** Advice for the operator if PostgreSQL is running but refuses the connection. `undefined` for every other error. */
export function refusalAdvice(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  const look = 'in the URL of PINFOLD_DATABASE or --database'
  if (code === '28P01' || code === '28000') return `check the user and the password ${look}`
  if (code === '08P01' && /unsupported startup parameter/.test((error as Error).message)) {
    return `the address is that of a pooler such as PgBouncer: add pooled=true ${look}`
  }
  if (code === '3D000') return `create the database with createdb, or use another one ${look}`
  return undefined
}

/** True if the database refused a statement because it is read-only. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === readOnly
}

/** True if a write failed in either engine because the disk of the database is full. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  return code === diskFull || (code === 'ERR_SQLITE_ERROR' && (Number(errcode) & 0xff) === sqliteFull)
}

/** Text for users about an error for which `isUnavailable` is true. */
export function whyUnavailable(error: unknown): string {
  if (isDiskFull(error)) {
    return 'the request failed, because the disk of the database is full; retry after the operator has freed space'
  }
  if (error instanceof StoppedByFullDisk) {
    return 'the database has stopped, because its disk is full; retry after the operator has freed space and started it'
  }
  const { code } = error as { code?: unknown }
  if (code === noMemory) return 'the request failed, because the database server has no memory left; retry later'
  return 'the database is unavailable; retry later'
}

/** True if an error of either engine means that the database is temporarily unavailable. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, errcode, syscall } = error as { code?: unknown; errcode?: unknown; syscall?: unknown }
  if (code === 'ERR_SQLITE_ERROR') return typeof errcode === 'number' && results.has(errcode & 0xff)
  if (code === 'ENOENT') return syscall === 'connect' // Unix socket without a server
  return typeof code === 'string' && (codes.has(code) || /^08[0-9A-Z]{3}$/.test(code))
}
