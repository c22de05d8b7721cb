import type { Db } from './db/sql.ts'
import type { Tracer } from './tracing/tracer.ts'

/** Wraps a database, so that transactions appear in the traces of their callers. Waits and retries are included. */
export function traceDatabase<D extends Db>(db: D, tracer: Tracer): D {
  if (!tracer.isOn) return db
  const attributes = { 'db.system.name': db.engine === 'sqlite' ? 'sqlite' : 'postgresql' }
  return { ...db, tx: (work, options) => tracer.part('transaction', attributes, () => db.tx(work, options)) }
}
