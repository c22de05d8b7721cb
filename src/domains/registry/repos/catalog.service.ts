// Lists paths of repositories in byte order. Paths are not stored, so they are built while groups and repositories are read.
import type { Reader } from '#db/sql.ts'
import { childGroupsByPath, groupsByUid } from '#domains/iam/groups/groups.service.ts'
import { isRepoPath } from '#lib/oci-names.ts'
import { lineage, top } from '#lib/uid.ts'
import { findRepoRow, repoNamesIn } from './repos.store.ts'

export type CatalogQuery = {
  /** Path after which the list begins. It need not exist. */
  after: string
  most: number
  /**
   * Subdomain of the registry's host in the request, or empty. With a subdomain, the list has only the folder of this name in
   * each organization. Paths in the list leave out the folder name.
   */
  subdomain: string
}
/** `next` is the path to continue after. Undefined on the last page. */
export type CatalogPage = { names: string[]; next: string | undefined }

/** Most rows that are read for one page. Without a limit, many empty folders could make a page slow. */
const maxRows = 10_000
const rowsPerQuery = 200
/** Character that sorts after all characters of names. */
const end = '~'

type Walk = { reader: Reader; after: string; subdomain: string; left: number; stopped: string | undefined }
type Root = { path: string; group: string | undefined }

/**
 * A page of the repositories in the given scopes, by path. The scopes do not overlap. If the name of a group or repository cannot
 * be part of a path, it is left out with everything below it.
 */
export async function catalogPage(
  reader: Reader,
  scopes: readonly string[],
  { after, most, subdomain }: CatalogQuery,
): Promise<CatalogPage> {
  // PostgreSQL does not accept the null character, and names do not contain it.
  const given = after.split('\0', 1)[0]!
  const from = subdomain === '' ? given : given.replace('/', () => `/${subdomain}/`)
  const walk: Walk = { reader, after: from, subdomain, left: maxRows, stopped: undefined }
  const shown = (path: string) => (subdomain === '' ? path : path.replace(`/${subdomain}/`, () => '/'))
  const names: string[] = []
  for (const { path, group } of await rootsOf(walk, scopes)) {
    const found = group === undefined ? [path].filter((one) => one > from) : below(walk, group, path)
    for await (const one of found) {
      if (names.length === most) return { names, next: names.at(-1) }
      if (isRepoPath(one)) names.push(shown(one))
    }
    if (walk.stopped !== undefined) return { names, next: shown(walk.stopped) }
  }
  return { names, next: undefined }
}

/** Groups and repositories with which the list starts, by path. Scopes that no longer exist are left out. */
async function rootsOf({ reader, subdomain }: Walk, scopes: readonly string[]): Promise<Root[]> {
  if (scopes.includes(top)) return [{ path: '', group: top }]
  const known = await groupsByUid(reader, scopes.flatMap(lineage))
  const roots: Root[] = []
  for (const scope of scopes) {
    const isGroup = known.has(scope)
    const repo = isGroup ? undefined : await findRepoRow(reader, { uid: scope })
    if (!isGroup && !repo) continue
    const groups = lineage(scope)
      .reverse()
      .slice(0, isGroup ? undefined : -1)
    const parts = [...groups.map((uid) => known.get(uid)?.name ?? ''), ...(repo ? [repo.name] : [])]
    const fits = subdomain === '' || parts.length === 1 || (parts[1] === subdomain && (isGroup || parts.length > 2))
    if (fits) roots.push({ path: parts.join('/'), group: isGroup ? scope : undefined })
  }
  const key = ({ path, group }: Root) => (group === undefined ? path : `${path}/`)
  return roots.sort((a, b) => (key(a) < key(b) ? -1 : 1))
}

/** Paths of repositories below a group that come after `walk.after`. If too many rows were read, sets `walk.stopped` and ends. */
async function* below(walk: Walk, group: string, path: string): AsyncGenerator<string> {
  const prefix = path === '' ? '' : `${path}/`
  const inside = walk.after.startsWith(prefix)
  if (!inside && walk.after > prefix) return
  const tail = inside ? walk.after.slice(prefix.length) : ''
  const ofSubdomain = walk.subdomain !== '' && group !== top && !group.includes('/')
  const groups = groupsIn(walk, group, tail, ofSubdomain ? walk.subdomain : undefined)
  const repos = group === top || ofSubdomain ? none() : reposIn(walk, group, tail)
  let [child, repo] = [await groups.next(), await repos.next()]
  let passed = inside ? walk.after : prefix
  while (!child.done || !repo.done) {
    if (walk.left-- <= 0) walk.stopped = passed
    if (walk.stopped !== undefined) return
    if (child.done || (!repo.done && repo.value < child.value.key)) {
      passed = `${prefix}${repo.value}`
      yield passed
      repo = await repos.next()
    } else {
      const { uid, name, key, filled } = child.value
      if (filled === 1 && isRepoPath(`${prefix}${name}/x`)) yield* below(walk, uid, `${prefix}${name}`)
      if (walk.stopped !== undefined) return
      passed = `${prefix}${key}${end}`
      child = await groups.next()
    }
  }
}

type Child = Awaited<ReturnType<typeof childGroupsByPath>>[number]

/** Groups of a parent, ordered by name with a trailing slash. If the list begins inside a group, this group comes first. */
async function* groupsIn(
  { reader }: Walk,
  parent: string,
  tail: string,
  named: string | undefined,
): AsyncGenerator<Child, undefined> {
  const slash = tail.indexOf('/')
  let [from, including] = slash < 0 ? [tail, false] : [tail.slice(0, slash + 1), true]
  for (let read = rowsPerQuery; read === rowsPerQuery; including = false) {
    const rows = await childGroupsByPath(reader, parent, { from, including, named, of: 'repos', most: rowsPerQuery })
    yield* rows
    read = rows.length
    from = rows.at(-1)?.key ?? ''
  }
}

async function* reposIn({ reader }: Walk, group: string, tail: string): AsyncGenerator<string, undefined> {
  let after = tail
  for (let read = rowsPerQuery; read === rowsPerQuery; ) {
    const names = await repoNamesIn(reader, group, after, rowsPerQuery)
    yield* names
    read = names.length
    after = names.at(-1) ?? ''
  }
}

async function* none(): AsyncGenerator<string, undefined> {}
