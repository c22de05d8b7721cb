// What the API finds by nothing but its uid, by what lists call it.
import { isUid } from '#lib/uid.ts'
import type { ApiReader } from '../shape/api-reader.ts'
import { checkNamed, type Kind, NothingNamed, onlyOf } from '../shape/names.ts'

/** How many are looked at; where the name begins with a place, of those in it. */
const looked = 2000

/** By its uid, by what `nameOf` calls it, or by that after the name of what it is in, with a slash between them. */
export function asListed<T extends { uid: string }>(
  kind: Kind,
  nameOf: (item: T) => string,
  placeOf: (api: ApiReader, given: string) => Promise<string>,
) {
  return async (api: ApiReader, given: string): Promise<string> => {
    if (isUid(given)) return given
    if (given === '') checkNamed(given, kind.words[0])
    const at = given.lastIndexOf('/')
    const above = given.slice(0, Math.max(at, 0))
    const place = above.split('/').includes('') ? undefined : await placeOf(api, above).catch(unlessNothing)
    // Without such a place the slash is a part of the name.
    const name = place === undefined ? given : given.slice(at + 1)
    const { items } = await api.list<T>(kind.path, kind.member, { 'uidp.children_of': place }, looked)
    return onlyOf(
      items.filter((item) => nameOf(item) === name),
      kind,
      given,
    )
  }
}

function unlessNothing(error: unknown): undefined {
  if (!(error instanceof NothingNamed)) throw error
}
