// The search index of the database, for the services of this domain.
import { addSearchParts, everything, searchKinds } from '#db/search/search-parts.ts'
import type { Tx } from '#db/sql.ts'

export { fillSearch, stepBack } from '#db/search/search-fill.ts'
export { indexQueued } from '#db/search/search-index.ts'
export {
  everything,
  groupNumbers,
  type PartRange,
  readParts,
  type SearchKind,
  searchKinds,
} from '#db/search/search-parts.ts'
export { gramsOf, rarestGram, reposWithGram, reposWithGrams } from '#db/search/tag-grams.ts'

/** Adds names of packages, which are found in their organization and in the whole server. */
export async function addPackages(
  tx: Tx,
  organization: number,
  packages: readonly { id: number; name: string }[],
): Promise<void> {
  const scopes = [everything, organization]
  const all = packages.map(({ id, name }) => ({ kind: searchKinds.packages, id, names: [name], scopes }))
  await addSearchParts(tx, all)
}
