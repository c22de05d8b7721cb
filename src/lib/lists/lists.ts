// Requests and responses of list methods, common to all lists and all versions of the API.
import { AppError } from '../errors.ts'
import { isUid } from '../uid.ts'
import { type Listed, type ListRules, type Page, type PageRequest, type PagingCall, readPage } from './paging.ts'

/** Filter that all lists of nodes have. A node must match all of its members. */
export type UidpFilter = {
  ancestorsOf: string
  descendantsOf: string
  childrenOf: string
  inRoot: boolean
  ids: readonly string[]
}

/** Query for the list of a service. Internal callers may set a larger page size than clients can request. */
export type ListQuery<F> = { uidp: UidpFilter | undefined; page: Page; filter: F }

/** Reads the common fields of a list request. `filter` has the other filters of the method. */
export function readList<F>(
  call: PagingCall,
  request: PageRequest & { uidp?: UidpFilter | undefined },
  rules: ListRules,
  filter: F,
): ListQuery<F> {
  const { uidp } = request
  return { uidp, filter, page: readPage(call, request, rules, [uidp, filter]) }
}

/** Fields that all list responses have. The total is missing if it was not counted. */
type PageMembers<N> = { nextPageToken: string; skipped: number } & (undefined extends N
  ? { totalCount?: bigint }
  : { totalCount: bigint })

/** Response with a page. `member` is the name of the field with the items. */
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

/** Maximum sum of the weights in a list without pages. */
const maxWhole = 100_000
const wholePage = 1000

/**
 * Returns the whole list of a service, in the order of the uids, for versions of the API without pages. In such a version, the
 * list for a missing or hidden resource is empty, not an error. `weigh` returns the weight of an item. Throws RESOURCE_EXHAUSTED
 * if the sum of the weights is too large.
 */
export async function wholeList<C extends { signal: AbortSignal }, T extends { uid: string }, F>(
  call: C,
  { uidp, id }: FilterWithId,
  filter: F,
  list: (call: C, query: ListQuery<F>) => Promise<Listed<T, number | undefined>>,
  weigh: (item: T) => number = () => 1,
): Promise<T[]> {
  if (isEmptyFilter({ uidp, id })) return []
  const items: T[] = []
  let weight = 0
  for (let last = ''; ; last = items.at(-1)!.uid) {
    call.signal.throwIfAborted()
    const page: Page = {
      order: { field: 'uid', column: 'uid', desc: false },
      after: last === '' ? undefined : { value: last, uid: last },
      size: wholePage,
      skip: 0,
      binding: '',
    }
    const found = await list(call, { uidp: withId({ uidp, id }), page, filter }).catch(emptyIfUnseen<T>)
    items.push(...found.items)
    weight += found.items.reduce((sum, item) => sum + weigh(item), 0)
    if (found.next === '') return items
    if (weight >= maxWhole) throw tooLong()
  }
}

/** Returns one page of such a list. Empty for a missing or hidden resource. */
export async function pageOrNothing<C, T, F, N extends number | undefined>(
  call: C,
  scope: FilterWithId,
  { page, filter }: Omit<ListQuery<F>, 'uidp'>,
  list: (call: C, query: ListQuery<F>) => Promise<Listed<T, N>>,
): Promise<Listed<T, N | 0>> {
  if (isEmptyFilter(scope)) return { items: [], total: 0, next: '' }
  return list(call, { uidp: withId(scope), page, filter }).catch(emptyIfUnseen<T>)
}

/** Scope of a list in version 1, which also has a field for a single ID. */
type FilterWithId = { uidp: UidpFilter | undefined; id: string }

/** True if no resource can match: the ID is not a uid, or is not one of the given uids. */
function isEmptyFilter({ uidp, id }: FilterWithId): boolean {
  return id !== '' && (!isUid(id) || (uidp !== undefined && uidp.ids.length > 0 && !uidp.ids.includes(id)))
}

function withId({ uidp, id }: FilterWithId): UidpFilter | undefined {
  return id === '' ? uidp : { ...everywhere, ...uidp, ids: [id] }
}

/** Filter that matches everything. */
export const everywhere: UidpFilter = { ancestorsOf: '', descendantsOf: '', childrenOf: '', inRoot: false, ids: [] }

function emptyIfUnseen<T>(error: unknown): Listed<T, 0> {
  if (error instanceof AppError && (error.code === 'NOT_FOUND' || error.code === 'PERMISSION_DENIED')) {
    return { items: [], total: 0, next: '' }
  }
  throw error
}

function tooLong(): AppError {
  const message = `the list has more than ${maxWhole} items, and version 1 has no pages; filter the list, or use version 2`
  return new AppError('RESOURCE_EXHAUSTED', message, { reason: 'LIST_TOO_LONG' })
}
