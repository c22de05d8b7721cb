// Resources of a group or repository, such as rules. They apply in this group or repository and below it.
import type { Query } from './api.ts'
import { readNext } from './list.ts'
import { parentOf } from './names.ts'

export type Scoped = { uid: string }
export type Where = 'here' | 'above' | 'below'

/** Query parameter for a scope and everything below it. */
export type ScopeParam = 'scopeUid' | 'uidp.descendantsOf'

const pages = 5
const size = 200

/**
 * Lists the resources that apply in a scope, and those that belong to a group or repository below it. Reads only the first
 * thousand of each organization.
 */
export async function readScoped<T extends Scoped>(
  path: string,
  member: string,
  {
    scope,
    scopeParam = 'scopeUid',
    query = {},
    signal,
  }: { scope: string; scopeParam?: ScopeParam; query?: Query; signal?: AbortSignal },
): Promise<{ items: T[]; isCut: boolean }> {
  const items: T[] = []
  let after = ''
  for (let page = 0; page < pages; page++) {
    const asked = { ...query, [scopeParam]: scope.split('/')[0]! }
    const read = await readNext<T>(path, member, { after, size, query: asked, signal })
    items.push(...read.items.filter(({ uid }) => whereOf(uid, scope) !== undefined))
    after = read.next
    if (after === '') break
  }
  return { items, isCut: after !== '' }
}

/** Position of a resource relative to a scope. `undefined` if neither contains the other. */
export function whereOf(uid: string, scope: string): Where | undefined {
  const at = parentOf(uid)
  if (at === scope) return 'here'
  if (scope.startsWith(`${at}/`)) return 'above'
  return at.startsWith(`${scope}/`) ? 'below' : undefined
}
