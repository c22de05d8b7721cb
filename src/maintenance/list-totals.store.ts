// Compares stored totals of lists with the list keys: the total of a kind in a list must equal the number of its keys in that
// list.
import { allAtLeisure, type Db, ident, sql, type Tx } from '#db/sql.ts'

export type WrongTotal = { scope: string; counted: number; found: number }

/**
 * Wrong totals of a kind, ordered by list. Totals and keys are read in one statement, so concurrent commits do not look like
 * differences. A difference stays the same until it is corrected.
 */
export async function wrongTotals(
  db: Db,
  { kind, table, listedBy }: { kind: string; table: string; listedBy?: string | undefined },
  { after, most }: { after: string; most: number },
): Promise<WrongTotal[]> {
  // The lists of a kind are named `kind.column`.
  const row = await db.get<{ list: string | null }>(sql`
    SELECT max(list) AS list FROM list_keys WHERE list > ${`${kind}.`} AND list < ${`${kind}/`}`)
  const isListed = listedBy === undefined ? sql`1 = 1` : sql`${ident(listedBy)} IS NOT NULL`
  const inTable = sql`
    SELECT '/' AS place, 0 AS counted, count(*) AS found FROM ${ident(table)} WHERE 1 = ${kind === table ? 1 : 0} AND ${isListed}`
  const found = row?.list
    ? sql`SELECT place, 0 AS counted, count(*) AS found FROM list_keys WHERE list = ${row.list} GROUP BY place`
    : inTable
  const query = sql`
    SELECT place AS scope, CAST(sum(counted) AS BIGINT) AS counted, CAST(sum(found) AS BIGINT) AS found FROM (
      SELECT place, CAST(sum(total) AS BIGINT) AS counted, 0 AS found FROM list_counts WHERE kind = ${kind} GROUP BY place
       UNION ALL
      ${found}) AS one_and_other
     WHERE place > ${after} GROUP BY place HAVING sum(counted) <> sum(found) ORDER BY place LIMIT ${most}`
  return allAtLeisure(db, query)
}

/** Adds the difference to the total of this connection's shard. */
export async function correctTotal(tx: Tx, kind: string, { scope, counted, found }: WrongTotal): Promise<void> {
  await tx.run(sql`
    INSERT INTO list_counts (kind, place, shard, total) VALUES (${kind}, ${scope}, ${tx.shard}, ${found - counted})
        ON CONFLICT (kind, place, shard) DO UPDATE SET total = list_counts.total + excluded.total`)
}
