// Folders and repositories of one group with their summaries, in pages.
import { readNext, readPage } from '../../data/list.ts'
import { readScopeSummaries } from '../../data/summaries.ts'
import type { Group, Repo, ScopeSummary } from '../../data/types.ts'

export type Row = { uid: string; name: string; description: string; isFolder: boolean }

export type Level = {
  rows: readonly Row[]
  summaries: ReadonlyMap<string, ScopeSummary>
  /** Total of the repositories of the group, on all pages. */
  repos: number
  /** Page token for further folders. Empty if there are none. */
  moreFolders: string
}

export const pageSize = 50

type Wanted = {
  order: string
  page?: number
  /** Page token of the folders. Reads only folders if it is not empty. */
  after?: string
}

/** Folders come first. Pages after the first have no folders. */
export async function readLevel(group: string, wanted: Wanted, signal: AbortSignal): Promise<Level> {
  const { order, page = 1, after = '' } = wanted
  const query = { 'uidp.childrenOf': group, orderBy: order }
  const none = { items: [], total: 0, next: '' }
  const [folders, repos] = await Promise.all([
    page === 1 ? readNext<Group>('/iam/v2/groups', 'groups', { after, size: pageSize, query, signal }) : none,
    after === '' ? readPage<Repo>('/registry/v2/repos', 'repos', { page, size: pageSize, query, signal }) : none,
  ])
  const rows = [
    ...folders.items.map((one) => ({ ...one, isFolder: true })),
    ...repos.items.map((one) => ({ ...one, isFolder: false })),
  ]
  const summaries = await readScopeSummaries(
    rows.map(({ uid }) => uid),
    signal,
  )
  return { rows, summaries, repos: repos.total ?? repos.items.length, moreFolders: folders.next }
}
