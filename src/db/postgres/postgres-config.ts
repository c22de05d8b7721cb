// Configuration of connections to PostgreSQL, from a URL and from Pinfold's own rules.
import pg from 'pg'

export const defaultPoolSize = 10

/**
 * Configuration of a pool from a URL. Removes `?schema=` and `?pooled=` from the URL. Errors never contain the URL, which may
 * have a password. A pooler accepts no session parameters, so the role must have them.
 */
export function poolConfig(url: string, { poolSize = defaultPoolSize, waitMs = 10_000 } = {}): pg.PoolConfig {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.protocol !== 'postgres:' && parsed?.protocol !== 'postgresql:') {
    throw new Error('the database must be a postgres:// URL')
  }
  const schema = parsed.searchParams.get('schema')
  if (schema !== null && !/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new Error('the schema in the database URL must be a lowercase name')
  }
  const pooled = parsed.searchParams.get('pooled')
  if (pooled !== null && pooled !== 'true' && pooled !== 'false')
    throw new Error('pooled in the database URL must be true or false')
  if (pooled === 'true' && schema !== null) {
    throw new Error(
      'the database URL cannot have a schema with pooled=true; set it for the role with ALTER ROLE … SET search_path',
    )
  }
  parsed.searchParams.delete('schema')
  parsed.searchParams.delete('pooled')
  // In pg, options in the URL override those of the config. So the schema is added to the options in the URL.
  const options = [parsed.searchParams.get('options'), schema && `-c search_path=${schema}`].filter(Boolean)
  if (options.length > 0) parsed.searchParams.set('options', options.join(' '))

  return {
    connectionString: parsed.href,
    max: poolSize,
    application_name: 'pinfold',
    connectionTimeoutMillis: waitMs,
    idleTimeoutMillis: 60_000,
    ...(pooled === 'true' ? {} : sessionLimits),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser },
  }
}

/**
 * True if the URL is that of a pooler, which gives each transaction another connection. Session state is then lost between
 * transactions.
 */
export function isPooledUrl(url: string): boolean {
  return URL.canParse(url) && new URL(url).searchParams.get('pooled') === 'true'
}

const sessionLimits = {
  statement_timeout: 30_000,
  // A transaction awaits nothing but its own statements. If it stops sending statements, PostgreSQL ends it, which releases its
  // locks.
  idle_in_transaction_session_timeout: 10_000,
}

// Converts values to the types that SQLite returns. By default, pg returns counts (int8) and sums (numeric) as text.
const parsers = new Map<number, (text: string) => unknown>([
  [pg.types.builtins.INT8, toInteger],
  [pg.types.builtins.NUMERIC, Number],
  [pg.types.builtins.BOOL, (text) => (text === 't' ? 1 : 0)],
  [pg.types.builtins.BYTEA, toBytes],
])

function getTypeParser(oid: number, format?: 'text' | 'binary') {
  return parsers.get(oid) ?? pg.types.getTypeParser(oid, format as 'text')
}

function toInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is too large for a number`)
  return value
}

function toBytes(text: string): Uint8Array {
  const buffer: Buffer = pg.types.getTypeParser(pg.types.builtins.BYTEA, 'text')(text)
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
}
