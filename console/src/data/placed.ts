// What is made at places, such as rules: it holds there and below.
import type { Query } from './api.ts'
import { readNext } from './list.ts'
import { parentOf } from './places.ts'

export type Placed = { uid: string }
export type Where = 'here' | 'above' | 'below'

/** What a list calls the place to look at and below. */
export type Scope = 'scopeUid' | 'uidp.descendantsOf'

const pages = 5
const size = 200

/** What holds at a place, made there or above, and what is made below it; of each organisation the first thousand are looked at. */
export async function readPlaced<T extends Placed>(
  path: string,
  member: string,
  {
    place,
    scope = 'scopeUid',
    query = {},
    signal,
  }: { place: string; scope?: Scope; query?: Query; signal?: AbortSignal },
): Promise<{ items: T[]; isCut: boolean }> {
  const items: T[] = []
  let after = ''
  for (let page = 0; page < pages; page++) {
    const asked = { ...query, [scope]: place.split('/')[0]! }
    const read = await readNext<T>(path, member, { after, size, query: asked, signal })
    items.push(...read.items.filter(({ uid }) => whereOf(uid, place) !== undefined))
    after = read.next
    if (after === '') break
  }
  return { items, isCut: after !== '' }
}

/** Where something is made, seen from a place; `undefined` for what has nothing to do with it. */
export function whereOf(uid: string, place: string): Where | undefined {
  const at = parentOf(uid)
  if (at === place) return 'here'
  if (place.startsWith(`${at}/`)) return 'above'
  return at.startsWith(`${place}/`) ? 'below' : undefined
}
