// Repositories that copy another repository of this registry.
import { readNext } from './list.ts'
import type { Repo } from './types.ts'

const pages = 5
const size = 200

/** Lists the copies below a group. Reads only the group's first thousand repositories. */
export async function readCopies(group: string, signal: AbortSignal): Promise<{ items: Repo[]; isCut: boolean }> {
  const items: Repo[] = []
  let after = ''
  for (let page = 0; page < pages; page++) {
    const query = { 'uidp.descendantsOf': group }
    const read = await readNext<Repo>('/registry/v2/repos', 'repos', { after, size, query, signal })
    items.push(...read.items.filter(isCopy))
    after = read.next
    if (after === '') break
  }
  return { items, isCut: after !== '' }
}

/** The API omits this member if the repository copies nothing. The type does not show that. */
export const isCopy = ({ syncConfig }: Pick<Repo, 'syncConfig'>): boolean => Boolean(syncConfig?.source)
