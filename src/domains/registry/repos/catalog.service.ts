// The paths of repositories in the order of their bytes, read on the way: no path is stored anywhere.
import type { Reader } from '#db/sql.ts'
import { childGroupsByPath, groupsByUid } from '#domains/iam/groups/groups.service.ts'
import { isRepoPath } from '#lib/oci-names.ts'
import { lineage, top } from '#lib/uid.ts'
import { findRepoRow, repoNamesIn } from './repos.store.ts'

export type CatalogWanted = {
  /** A path; only what sorts after it is listed. It need not be there. */
  after: string
  most: number
  /** Of the registry's host: only what is in this folder of each organisation, named without it. Else empty. */
  subdomain: string
}
/** `next` is what to go on after; nothing where there is no more. */
export type CatalogPage = { names: string[]; next: string | undefined }

/** How many rows are looked at for one page, so that empty folders cannot make it long. */
const maxRows = 10_000
const rowsPerQuery = 200
/** Sorts after whatever a name may hold. */
const end = '~'

type Walk = { reader: Reader; after: string; subdomain: string; left: number; stopped: string | undefined }
type Root = { path: string; group: string | undefined }

/**
 * Some of the repositories at and below disjoint places, by their paths. A name that no path can hold is left out, with
 * what is below it.
 */
export async function catalogPage(
  reader: Reader,
  places: readonly string[],
  { after, most, subdomain }: CatalogWanted,
): Promise<CatalogPage> {
  // PostgreSQL takes no NUL, and no name has one.
  const given = after.split('\0', 1)[0]!
  const from = subdomain === '' ? given : given.replace('/', () => `/${subdomain}/`)
  const walk: Walk = { reader, after: from, subdomain, left: maxRows, stopped: undefined }
  const shown = (path: string) => (subdomain === '' ? path : path.replace(`/${subdomain}/`, () => '/'))
  const names: string[] = []
  for (const { path, group } of await rootsOf(walk, places)) {
    const found = group === undefined ? [path].filter((one) => one > from) : below(walk, group, path)
    for await (const one of found) {
      if (names.length === most) return { names, next: names.at(-1) }
      if (isRepoPath(one)) names.push(shown(one))
    }
    if (walk.stopped !== undefined) return { names, next: shown(walk.stopped) }
  }
  return { names, next: undefined }
}

/** Where the walk begins, in the order of the paths; places that are none any more are left out. */
async function rootsOf({ reader, subdomain }: Walk, places: readonly string[]): Promise<Root[]> {
  if (places.includes(top)) return [{ path: '', group: top }]
  const known = await groupsByUid(reader, places.flatMap(lineage))
  const roots: Root[] = []
  for (const place of places) {
    const isGroup = known.has(place)
    const repo = isGroup ? undefined : await findRepoRow(reader, { uid: place })
    if (!isGroup && !repo) continue
    const groups = lineage(place)
      .reverse()
      .slice(0, isGroup ? undefined : -1)
    const parts = [...groups.map((uid) => known.get(uid)?.name ?? ''), ...(repo ? [repo.name] : [])]
    const fits = subdomain === '' || parts.length === 1 || (parts[1] === subdomain && (isGroup || parts.length > 2))
    if (fits) roots.push({ path: parts.join('/'), group: isGroup ? place : undefined })
  }
  const key = ({ path, group }: Root) => (group === undefined ? path : `${path}/`)
  return roots.sort((a, b) => (key(a) < key(b) ? -1 : 1))
}

/** The paths below a group after that of the walk. Ends early, with `stopped`, where too much was looked at. */
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

/** Groups by the name with its slash: one that the walk begins in is the first. */
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
