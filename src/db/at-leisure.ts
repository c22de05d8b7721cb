import type { Db, Sql } from './sql.ts'

/** What a query finds that may read as much as there is, and so take longer than a request may. It holds up nobody. */
export function allAtLeisure<T>(db: Db, query: Sql): Promise<T[]> {
  return reading[db.engine](db, query)
}

const reading: Record<Db['engine'], <T>(db: Db, query: Sql) => Promise<T[]>> = {
  sqlite: (db, query) => db.all(query),
  postgres: (db, query) => db.tx((tx) => tx.all(query), { isolation: 'rowLocks', timeLimit: 'none' }),
}
