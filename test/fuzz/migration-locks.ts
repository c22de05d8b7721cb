// Measures how long migrations hold exclusive locks on tables with many rows. Only migrations that can run beside servers of
// another version are measured. To run it by hand:
//   PINFOLD_TEST_DATABASE=postgres://… bin/pinfold-node test/fuzz/migration-locks.ts --rows 1000000
// With --check it fails if a lock is held for more than 100 ms.
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { migrate } from '#db/migrate.ts'
import { phaseOf } from '#db/migration-ids.ts'
import { migrations } from '#db/migrations/all.ts'
import { openDb } from '#db/open.ts'
import { sql } from '#db/sql.ts'
import { words } from '#db/words.ts'
import { createStorage } from '../support/process.ts'

const { values } = parseArgs({
  options: { rows: { type: 'string', default: '1000000' }, check: { type: 'boolean', default: false } },
})
const rows = Number(values.rows)
await using storage = await createStorage({ isEmpty: true })
if (storage.database === '') throw new Error('PINFOLD_TEST_DATABASE must name a PostgreSQL')
const db = await openDb({ database: storage.database, file: '' })
// Migrations up to the last one that needs stopped servers are applied first, since no server runs then.
const last = migrations.findLastIndex(({ id }) => phaseOf(id) === 'whole')
const isPhased = ({ id }: { id: string }) => migrations.findIndex((one) => one.id === id) > last
const before = migrations.filter((one) => !isPhased(one))
await migrate(db, before, { finish: true })

// Referenced tables, if they exist. Only the number of rows matters, not their content.
const texts = migrations.filter(isPhased).map((one) => ('up' in one ? one.up(words.postgres).join(';') : ''))
const tables = (
  await db.all<{ name: string }>(
    sql`SELECT table_name AS name FROM information_schema.tables WHERE table_schema = ${storage.schema}`,
  )
).filter(({ name }) => new RegExp(`\\b${name}\\b`).test(texts.join(' ')))
const client = await storage.connect()
await client.query(`SET search_path = ${storage.schema}; SET session_replication_role = replica`)
for (const { name } of tables) {
  const { rows: columns } = await client.query<{ column: string; type: string }>(
    `SELECT a.attname AS column, format_type(a.atttypid, NULL) AS type
       FROM pg_attribute a WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity = ''
        AND a.attgenerated = ''`,
    [name],
  )
  const value = ({ column, type }: { column: string; type: string }) =>
    type === 'text'
      ? /uid|organization/.test(column)
        ? `lpad(to_hex(n), 40, '0')`
        : `'x' || n`
      : type === 'bytea'
        ? `''::bytea`
        : type === 'smallint'
          ? '0'
          : 'n'
  await client.query(
    `INSERT INTO ${name} (${columns.map(({ column }) => column).join(', ')})
     SELECT ${columns.map(value).join(', ')} FROM generate_series(1, ${rows}) AS n ON CONFLICT DO NOTHING`,
  )
  console.log(`${name}: ${rows} rows`)
}
await client.end()

const held = new Map<string, number>()
let isOver = false
const watcher = await storage.connect()
const watching = (async () => {
  let last = performance.now()
  while (!isOver) {
    const { rows: found } = await watcher.query<{ table: string; mode: string }>(
      `SELECT c.relname AS table, l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
         JOIN pg_namespace s ON s.oid = c.relnamespace
        WHERE s.nspname = $1 AND c.relkind = 'r' AND l.granted AND c.relname = ANY ($2)
          AND l.mode IN ('AccessExclusiveLock', 'ExclusiveLock', 'ShareRowExclusiveLock', 'ShareLock')`,
      [storage.schema, tables.map(({ name }) => name)],
    )
    const now = performance.now()
    for (const { table, mode } of found)
      held.set(`${mode} of ${table}`, (held.get(`${mode} of ${table}`) ?? 0) + now - last)
    last = now
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
})()
const began = performance.now()
// Migrations in the order of the list, one after the other, as releases apply them.
for (const [at, one] of migrations.entries()) {
  if (!isPhased(one)) continue
  const known = migrations.filter((other, i) => !isPhased(other) || i <= at)
  await migrate(db, known, { finish: true })
}
const took = performance.now() - began
isOver = true
await watching
await watcher.end()
await db.close()
console.log(
  `${migrations.length - before.length} migrations with ${rows} rows in ${tables.length} tables: ${took.toFixed(0)} ms`,
)
for (const [lock, ms] of [...held].sort(([, a], [, b]) => b - a)) console.log(`  ${lock}: about ${ms.toFixed(0)} ms`)
if (values.check) {
  // All of these lock modes block writers. The first one also blocks readers.
  const long = [...held].filter(([, ms]) => ms > 100)
  assert.deepEqual(long, [], 'a table was held for more than 100 ms')
}
