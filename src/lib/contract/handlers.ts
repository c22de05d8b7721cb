// Common handlers of resources. Each reads its request, calls a service and returns the result as a message.
import type { DescMethod, MessageShape } from '@bufbuild/protobuf'
import type { Patch } from '../fields.ts'
import { type ListQuery, listResponse, readList, type UidpFilter } from '../lists/lists.ts'
import type { Listed, ListRules, PageRequest, PagingCall } from '../lists/paging.ts'
import { empty } from '../wire.ts'

type Show<T, M> = (value: T) => M

/** Handler of a Get method. */
export function getting<C, T, M>(get: (call: C, uid: string) => Promise<T>, toMessage: Show<T, M>) {
  return async (call: C, { uid }: { uid: string }): Promise<M> => toMessage(await get(call, uid))
}

/** Handler of a List method with pages. `filterOf` returns the filters of the request. */
export function listing<D extends DescMethod, C extends PagingCall, T, F, N extends number | undefined>(
  method: D,
  rules: ListRules,
  filterOf: (request: MessageShape<D['input']>) => F,
  list: (call: C, query: ListQuery<F>) => Promise<Listed<T, N>>,
  toMessage: (item: T, call: C) => unknown,
) {
  const { typeName, fields } = method.output
  const { localName } = fields.find(({ fieldKind }) => fieldKind === 'list')!
  return async (call: C, request: MessageShape<D['input']>): Promise<MessageShape<D['output']>> => {
    const paged = request as unknown as PageRequest & { uidp?: UidpFilter | undefined }
    const listed = await list(call, readList(call, paged, rules, filterOf(request)))
    return listResponse(typeName, localName, listed, (item) => toMessage(item, call), paged) as unknown as MessageShape<
      D['output']
    >
  }
}

/** Handler of a Create method. `parent` and `member` are the request fields with the parent and the new resource. */
export function creating<P extends string, K extends string, C, R, I, T, M>(
  [parent, member]: readonly [P, K],
  fromMessage: (message: R | undefined) => I,
  create: (call: C, parent: string, input: I) => Promise<T>,
  toMessage: Show<T, M>,
) {
  return async (call: C, request: Record<P, string> & { [key in K]?: R | undefined }): Promise<M> =>
    toMessage(await create(call, request[parent], fromMessage(request[member])))
}

/** Handler of an Update method with an update mask. */
export function updating<K extends string, C, R extends { uid: string }, V, T, M>(
  member: K,
  fromMessage: (message: R | undefined) => Partial<V>,
  update: (call: C, uid: string, patch: Patch<V>) => Promise<T>,
  toMessage: Show<T, M>,
) {
  type Request = { [key in K]?: R | undefined } & { updateMask?: { paths: string[] } | undefined }
  return async (call: C, request: Request): Promise<M> => {
    const given: R | undefined = request[member]
    const patch = { paths: request.updateMask?.paths ?? [], value: fromMessage(given) }
    return toMessage(await update(call, given?.uid ?? '', patch))
  }
}

/** Handler of an Update method without an update mask. Replaces the members at `paths`. */
export function replacing<C, R extends { id: string }, V, T, M>(
  paths: readonly string[],
  fromMessage: (message: R | undefined) => Partial<V>,
  update: (call: C, uid: string, patch: Patch<V>) => Promise<T>,
  toMessage: Show<T, M>,
) {
  return async (call: C, message: R): Promise<M> =>
    toMessage(await update(call, message.id, { paths, value: fromMessage(message) }))
}

/** Handler of a Delete method. `member` is the request field with the uid of the resource. */
export function deleting<K extends string, C>(member: K, remove: (call: C, uid: string) => Promise<void>) {
  return async (call: C, request: Record<K, string>): Promise<typeof empty> => {
    await remove(call, request[member])
    return empty
  }
}
