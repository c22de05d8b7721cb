// Queries of a store, and the query plans of the database for them.
import assert from 'node:assert/strict'
import { compile, type Reader, type Sql } from '#db/sql.ts'
import { onPostgres, type Pinfold } from './pinfold.ts'

/** Records the queries that a function of a store runs. Queries for one row find `row`. */
export async function queriesOf(ask: (reader: Reader) => Promise<unknown>, row?: object): Promise<Sql[]> {
  const queries: Sql[] = []
  const note = async <T>(query: Sql, answer: T): Promise<T> => {
    queries.push(query)
    return answer
  }
  await ask({ all: (query) => note(query, []), get: <T>(query: Sql) => note(query, row as T | undefined) })
  return queries
}

/**
 * Fails if a step of the plan reads a whole table or sorts. The step `matches` may, since it has a limit. The plan must contain
 * all of `wanted`.
 */
export async function checkPlanOf(
  pinfold: Pinfold,
  query: Sql,
  what: string,
  wanted: readonly RegExp[] = [],
): Promise<void> {
  const plan = await pinfold.app.db.plan(query)
  const shown = `${what}\n${compile(query, '?')}\n${plan}`
  if (plan.includes('One-Time Filter: false')) return // PostgreSQL recognizes that a row cannot have two different parents, and plans no scan.
  const bad = onPostgres
    ? /\bSeq Scan\b|\bSort\b/
    : /\bSCAN (?!matches\b|CONSTANT ROW)(?!.* USING (?:COVERING )?INDEX)|TEMP B-TREE|AUTOMATIC/
  assert.doesNotMatch(plan, bad, shown)
  for (const part of wanted) assert.match(plan, part, shown)
}
