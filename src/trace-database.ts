import type { Db } from './db/sql.ts'
import type { Tracer } from './tracing/tracer.ts'

/** The same database, whose transactions show in the traces of what asks for them, waits and repetitions included. */
export function traceDatabase<D extends Db>(db: D, tracer: Tracer): D {
  if (!tracer.isOn) return db
  const attributes = { 'db.system.name': db.engine === 'sqlite' ? 'sqlite' : 'postgresql' }
  return { ...db, tx: (work, options) => tracer.part('transaction', attributes, () => db.tx(work, options)) }
}
