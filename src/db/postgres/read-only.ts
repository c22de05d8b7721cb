// Detection of a PostgreSQL server that refuses writes: a standby, a server in recovery, or one that is set to read-only.
import type pg from 'pg'
import { readOnly as code } from '../unavailable.ts'
import { codeOf, type Sends } from './send.ts'

const standby = 'the database is in recovery, such as a standby'

/** Throws if the database is a standby. */
export async function requirePrimary({ send, limits }: Sends, client: pg.ClientBase): Promise<void> {
  const { rows } = await send(client, { text: 'SELECT pg_is_in_recovery() AS recovers' }, limits.quick)
  if (rows[0].recovers) throw readOnly(standby)
}

/** Throws if the database refuses writes. */
export async function requireWritable({ send, limits }: Sends, client: pg.PoolClient): Promise<void> {
  const text = `SELECT pg_is_in_recovery() AS recovers, current_setting('transaction_read_only') AS "readOnly"`
  const { rows } = await send(client, { text }, limits.quick)
  if (rows[0].recovers) throw readOnly(standby)
  if (rows[0].readOnly === 'on') throw readOnly('the database is read-only')
}

/** Replaces a misleading error. A standby refuses serializable transactions with the code of an unsupported feature (0A000). */
export async function withReason({ send, limits }: Sends, client: pg.PoolClient, error: unknown): Promise<unknown> {
  if (codeOf(error) !== '0A000' || client.getTransactionStatus() !== 'I') return error
  const asked = await send(client, { text: 'SELECT pg_is_in_recovery() AS recovers' }, limits.quick).catch(
    () => undefined,
  )
  return asked?.rows[0].recovers ? readOnly(standby, error) : error
}

function readOnly(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code })
}
