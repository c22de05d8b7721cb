// Repositories that copy another one of this registry.
import { readNext } from './list.ts'
import type { Repo } from './types.ts'

const pages = 5
const size = 200

/** Copies below a group; only its first thousand repositories are checked. */
export async function readCopies(place: string, signal: AbortSignal): Promise<{ items: Repo[]; isCut: boolean }> {
  const items: Repo[] = []
  let after = ''
  for (let page = 0; page < pages; page++) {
    const query = { 'uidp.descendantsOf': place }
    const read = await readNext<Repo>('/registry/v2/repos', 'repos', { after, size, query, signal })
    items.push(...read.items.filter(isCopy))
    after = read.next
    if (after === '') break
  }
  return { items, isCut: after !== '' }
}

/** The member is missing in a repo that copies nothing, although its type has it. */
export const isCopy = ({ syncConfig }: Pick<Repo, 'syncConfig'>): boolean => Boolean(syncConfig?.source)
