// Results of the search API, and the pages that show them.
import type { SearchResponseJson, SearchResultJson } from '#gen/pinfold/control/search/v1/search_pb.ts'
import { paths } from '../../app/paths.ts'
import { ask, type Full } from '../../data/api.ts'
import type { IconName } from '../../ui/icon.tsx'
import { searchWords } from '../../words/search.ts'

export type Kind = keyof typeof searchWords.kinds
export type Result = Omit<Full<SearchResultJson>, 'kind' | 'updateTime'> & { kind: Kind; updateTime?: string }
export type Suggestions = { results: readonly Result[]; isIncomplete: boolean }

export const kinds = Object.keys(searchWords.kinds) as Kind[]
export const isKind = (text: string): text is Kind => Object.hasOwn(searchWords.kinds, text)

/** Results of each kind in a list of suggestions. */
export const perKind = 4
/** Results if only one kind is searched. */
const ofOneKind = 20

/** Reads suggestions while the user types. `scope` is the uid of an organization, or empty. */
export async function suggest(
  { q, kind, scope }: { q: string; kind: Kind | undefined; scope: string },
  signal: AbortSignal,
): Promise<Suggestions> {
  const query = { query: q, kinds: kind, scopeUid: scope, perKind: kind === undefined ? perKind : ofOneKind }
  const answer = await ask<SearchResponseJson>('GET', '/registry/v2/search', { query, signal })
  return { results: (answer.results ?? []) as Result[], isIncomplete: answer.incomplete === true }
}

export const iconOf: Record<Kind, IconName> = {
  organization: 'organization',
  folder: 'folder',
  repository: 'repository',
  tag: 'tag',
  digest: 'digest',
  package: 'repositories',
  vulnerability: 'bad',
  member: 'user',
}

/** Address of the page that shows a result. */
export function hrefOf({ kind, name, path, digest, resourceUid }: Result): string {
  const names = (kind === 'tag' ? path.slice(0, -name.length - 1) : path.replace(/@.*/, '')).split('/')
  switch (kind) {
    case 'organization':
      return paths.group(names)
    case 'folder':
      return paths.group(names)
    case 'repository':
      return paths.repo(names)
    case 'tag':
      return paths.tag(names, name)
    case 'digest':
      return paths.digest(names, digest)
    case 'package':
      return paths.package(name)
    case 'vulnerability':
      return paths.search(name)
    case 'member':
      return path === '' ? paths.organizations : `${paths.group(names, 'members')}?identity=${resourceUid}`
  }
}

/** Text of a result. Paths begin below the organization `within`. */
export function labelOf({ kind, name, path }: Result, within = ''): string {
  const isPath = ['organization', 'folder', 'repository', 'tag'].includes(kind)
  const text = isPath ? path : kind === 'digest' ? path.replace(/(@[a-z0-9]+:.{8}).*/, '$1') : name
  return within !== '' && text.startsWith(`${within}/`) ? text.slice(within.length + 1) : text
}

/** Position of the searched text in a label, from the end, since names come last in paths. Undefined if it is not there. */
export function matchIn(label: string, q: string): { from: number; to: number } | undefined {
  const lower = label.toLowerCase()
  const last = q.split(/[/:@]/).at(-1) ?? ''
  for (const part of [q, last]) {
    const from = part === '' ? -1 : lower.lastIndexOf(part.toLowerCase())
    if (from >= 0) return { from, to: from + part.length }
  }
  return undefined
}
