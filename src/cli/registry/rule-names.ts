// Rules of any kind by the names that they were given, and the places that they hold at.
import { isUid } from '#lib/uid.ts'
import type { ApiReader } from '../shape/api-reader.ts'
import { checkNamed, groupAbove, groupOf, type Kind, NothingNamed, onlyOf } from '../shape/names.ts'
import { lookForImage } from './image-names.ts'

/** The uid of a repository or of a group. */
export async function placeNamed(api: ApiReader, given: string): Promise<string> {
  const repo = given.includes('/') ? await lookForImage(api, given) : undefined
  if (repo !== undefined) return repo
  return groupOf(api, given).catch((error: unknown) => {
    if (!(error instanceof NothingNamed && given.includes('/'))) throw error
    const hint = 'pinfold iam folders list and pinfold images repos list show those that there are'
    throw new NothingNamed(`there is no folder or repository ${given} that you can see\n${hint}`)
  })
}

/** What an organisation may have of one kind, many times over. */
const looked = 2000

/** By its uid, its name, or its place and its name; the API looks for no name, and several may have one. */
export const ruleNamed =
  (kind: Kind) =>
  async (api: ApiReader, given: string): Promise<string> => {
    if (isUid(given)) return given
    const at = given.lastIndexOf('/')
    const wanted = given.slice(at + 1)
    // A rule need not have a name.
    checkNamed(given, kind.words[0])
    const scope_uid = at < 0 ? undefined : await placeNamed(api, given.slice(0, at))
    const { items } = await api.list<{ uid: string; name?: string }>(kind.path, kind.member, { scope_uid }, looked)
    const called = items.filter(({ name }) => name === wanted)
    return onlyOf(
      called.filter(({ uid }) => scope_uid === undefined || groupAbove(uid) === scope_uid),
      kind,
      given,
    )
  }
