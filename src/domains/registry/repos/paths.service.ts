// Finds a repository by its path, `acme/team/app`. If the repository is missing, finds the existing groups on the path.
import type { Reader } from '#db/sql.ts'
import { findGroupName, findGroupUid } from '#domains/iam/groups/groups.service.ts'
import { createSharedResults } from '#lib/caches/short-lived-cache.ts'
import { isUid, lineage, parentOf, top } from '#lib/uid.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import type { Found, PathCache } from './repos.model.ts'
import { type FollowingRepoRow, findRepoRow, listReposNamed, type RepoRow } from './repos.store.ts'

/**
 * Finds a repository by its path. Each part of the path is a name. The organization and the parts after it can also be parts of a
 * uid.
 */
export async function findByPath(reader: Reader, path: string): Promise<Found> {
  const parts = path.split('/')
  const name = parts.pop()!
  const names: string[] = []
  let group = top
  for (const [i, part] of parts.entries()) {
    const next = await findGroup(reader, group, part)
    if (!next) return { group: group === top ? '' : group, folders: parts.slice(i), name }
    group = next.uid
    names.push(next.name)
  }
  const row = await findRepo(reader, group, name)
  if (!row) return { group, folders: [], name }
  const { id, uid, ledger, follow } = row
  return { repo: { id, uid, ledger, group, path: [...names, row.name].join('/'), follow: follow ?? undefined } }
}

export type RepoNamed = RepoRow

export function findRepoByUid(reader: Reader, uid: string): Promise<RepoRow | undefined> {
  return findRepoRow(reader, { uid })
}

/** Repository with this uid or path. If `named` is only a name, returns some repositories with this name in the scopes. */
export async function reposNamed(reader: Reader, named: string, scopes: readonly string[]): Promise<RepoRow[]> {
  const { repo } = named.includes('/') ? await findByPath(reader, named) : { repo: undefined }
  if (named.includes('/')) {
    const row = repo && (await findRepoRow(reader, { uid: repo.uid }))
    return row ? [row] : []
  }
  const found = new Map<string, RepoRow>()
  for (const scope of scopes) {
    const itself = await findRepoRow(reader, { uid: scope })
    for (const row of itself ? [itself] : await listReposNamed(reader, scope, named, maxNamed)) {
      if (row.name === named) found.set(row.uid, row)
    }
    if (found.size >= maxNamed) break
  }
  return [...found.values()]
}

/** Two repositories are enough to see that a name is ambiguous. */
const maxNamed = 2

/** Path of a child in the group, made of names. */
export async function pathIn(reader: Reader, group: string, name: string): Promise<string> {
  const names: string[] = []
  for (const uid of lineage(group).reverse()) names.push((await findGroupName(reader, uid)) ?? '')
  return [...names, name].join('/')
}

/** Repository of a row, with its group and path. */
export async function toRepoRef(reader: Reader, { id, uid, name, ledger }: RepoRow): Promise<RepoRef> {
  const group = parentOf(uid)
  return { id, uid, ledger, group, path: await pathIn(reader, group, name) }
}

type Named = { uid: string; name: string }

/**
 * Finds a group by one part of a path. A uid takes precedence over a name. Otherwise a group with the name of another group's uid
 * could be mistaken for that group.
 */
async function findGroup(reader: Reader, parent: string, part: string): Promise<Named | undefined> {
  const spelled = uidOf(parent, part)
  const spelledName = spelled === undefined ? undefined : await findGroupName(reader, spelled)
  if (spelledName !== undefined) return { uid: spelled!, name: spelledName }
  const uid = await findGroupUid(reader, parent, part)
  return uid === undefined ? undefined : { uid, name: part }
}

async function findRepo(reader: Reader, group: string, name: string): Promise<FollowingRepoRow | undefined> {
  const spelled = uidOf(group, name)
  const row = spelled === undefined ? undefined : await findRepoRow(reader, { uid: spelled })
  return row ?? findRepoRow(reader, { group, name })
}

function uidOf(parent: string, part: string): string | undefined {
  const uid = parent === top ? part : `${parent}/${part}`
  return isUid(uid) ? uid : undefined
}

const maxOrganizations = 1000

/** Creates a cache of paths. `monotonic` returns milliseconds of a clock that never jumps. */
export function createPathCache(reader: Reader, monotonic: () => number): PathCache {
  // Missing repositories are not cached, since they may be created soon and are rarely requested.
  const paths = createSharedResults<Found>(monotonic, { rereads: true }, ({ repo }) => repo !== undefined)
  const organizations = createSharedResults<boolean>(monotonic, { entries: maxOrganizations })
  return {
    find: (path) => paths.of(path, () => findByPath(reader, path)),
    hasOrganization: (name) => {
      return organizations.of(name, async () => (await findGroupUid(reader, top, name)) !== undefined)
    },
    clear: paths.clear,
  }
}
