import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import { type Branch, type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import { listScope, type ScopeRules } from './list-scope.ts'

/**
 * Functions that read a list. `list` returns up to one row more than the page, which shows that there is a next page. `count`
 * returns the total, or undefined if counting would take too long.
 */
export type ListSource<T, F, N, P = Branch> = {
  list(reader: Reader, scopes: readonly P[], page: Page, filter: F): Promise<T[]>
  count(reader: Reader, scopes: readonly P[], filter: F): Promise<N>
}

/** Lists the resources that the query selects and that the caller can see. */
export async function listNodes<T extends { uid: string }, F, N extends number | undefined>(
  call: Call,
  query: ListQuery<F>,
  source: ListSource<T, F, N>,
  rules: ScopeRules = {},
): Promise<Listed<T, N>> {
  return listFrom(call, query, await listScope(call, query.uidp, rules), source)
}

/** Like `listNodes`, but the service has already determined the scopes to list. */
export async function listFrom<T extends { uid: string }, F, N extends number | undefined, P>(
  call: Call,
  { page, filter }: Pick<ListQuery<F>, 'page' | 'filter'>,
  scopes: readonly P[],
  source: ListSource<T, F, N, P>,
): Promise<Listed<T, N>> {
  const { db } = call.app
  const list = async () => source.list(db, scopes, page, filter)
  // Async functions never throw at once. Otherwise, nothing would handle the rejection of the other read, which ends the process.
  const count = async () => source.count(db, scopes, filter)
  const [rows, total] = await Promise.all([list(), count()])
  return toListed(call, page, rows, total)
}
