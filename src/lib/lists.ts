// How a list method is asked and answers; the same for every list and every version of the API.
import { type Listed, type ListRules, type Page, type PageRequest, type PagingCall, readPage } from './paging.ts'

/** The filter that every list of nodes shares; its members narrow each other. */
export type UidpFilter = {
  ancestorsOf: string
  descendantsOf: string
  childrenOf: string
  inRoot: boolean
  ids: readonly string[]
}

/** What a service is asked to list. A page may be larger than any that a client can ask for. */
export type ListQuery<F> = { uidp: UidpFilter | undefined; page: Page; filter: F }

/** Reads what all list requests have. `filter` is what else the method can be asked for. */
export function readList<F>(
  call: PagingCall,
  request: PageRequest & { uidp?: UidpFilter | undefined },
  rules: ListRules,
  filter: F,
): ListQuery<F> {
  const { uidp } = request
  return { uidp, filter, page: readPage(call, request, rules, [uidp, filter]) }
}

/** What all list responses have; the total only where there are not too many to count. */
type PageMembers<N> = { nextPageToken: string; skipped: number } & (undefined extends N
  ? { totalCount?: bigint }
  : { totalCount: bigint })

/** The response that shows a page, its items in the member that is named. */
export function listResponse<S extends string, K extends string, T, M, N extends number | undefined>(
  $typeName: S,
  member: K,
  { items, next, total }: Listed<T, N>,
  toMessage: (item: T) => M,
  { skip }: { skip: number },
): { $typeName: S } & Record<K, M[]> & PageMembers<N> {
  const shown = { [member]: items.map((item) => toMessage(item)) } as Record<K, M[]>
  const totals = (total === undefined ? {} : { totalCount: BigInt(total) }) as { totalCount: bigint }
  return { $typeName, ...shown, nextPageToken: next, skipped: skip, ...totals }
}
