import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import { type Branch, type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import { listScope, type ScopeRules } from './list-scope.ts'

/**
 * What a store lists from places: a page, with one row more than it has room for, and how many there are in all, or
 * `undefined` where it would take too long to count them.
 */
export type ListSource<T, F, N, P = Branch> = {
  list(reader: Reader, places: readonly P[], page: Page, filter: F): Promise<T[]>
  count(reader: Reader, places: readonly P[], filter: F): Promise<N>
}

/** Lists nodes: those that the query asks for, cut to what the caller may see. */
export async function listNodes<T extends { uid: string }, F, N extends number | undefined>(
  call: Call,
  query: ListQuery<F>,
  source: ListSource<T, F, N>,
  rules: ScopeRules = {},
): Promise<Listed<T, N>> {
  return listFrom(call, query, await listScope(call, query.uidp, rules), source)
}

/** The same from places that the service has found itself. */
export async function listFrom<T extends { uid: string }, F, N extends number | undefined, P>(
  call: Call,
  { page, filter }: Pick<ListQuery<F>, 'page' | 'filter'>,
  places: readonly P[],
  source: ListSource<T, F, N, P>,
): Promise<Listed<T, N>> {
  const { db } = call.app
  const [rows, total] = await Promise.all([source.list(db, places, page, filter), source.count(db, places, filter)])
  return toListed(call, page, rows, total)
}
