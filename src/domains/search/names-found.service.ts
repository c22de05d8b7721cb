// Finds groups, repositories and members by the index of names.

import type { Reader } from '#db/sql.ts'
import { groupsByUid } from '#domains/iam/groups/groups.service.ts'
import { type Rank, rankOf } from '#lib/lists/search-text.ts'
import { lineage, parentOf, top } from '#lib/uid.ts'
import * as store from './names.store.ts'
import { everything, groupNumbers, readParts, type SearchKind, searchKinds } from './parts.store.ts'
import {
  type Chunk,
  type IndexRow,
  isFirstPart,
  isIn,
  nothing,
  partRangeOf,
  type Range,
  readRange,
  rowsOfScopes,
} from './ranges.service.ts'
import type { Kind, Result } from './search.model.ts'

/** Most scopes in one query. SQLite limits the parts of a compound statement. */
const scopesAtOnce = 100

/** Row of the search index. */
export type NameRow = IndexRow & { tie: number }

/** A node with its names, before its path is known. */
type Node = store.NodeRow & { names: readonly string[]; scope: string }

type IndexedKind = {
  kind: SearchKind
  shown: Kind
  /** Nodes of the rows that are in the scopes. */
  nodes(reader: Reader, ids: readonly number[], scopes: readonly string[]): Promise<readonly Node[]>
}

const ofRows = (rows: readonly store.NodeRow[], scope: (uid: string) => string): Node[] =>
  rows.map((row) => ({ ...row, names: [row.name], scope: scope(row.uid) }))

export const indexed = {
  organizations: {
    kind: searchKinds.organizations,
    shown: 'organization',
    nodes: async (reader, ids) => ofRows(await store.groupsOf(reader, ids), (uid) => uid),
  },
  folders: {
    kind: searchKinds.folders,
    shown: 'folder',
    nodes: async (reader, ids) => ofRows(await store.groupsOf(reader, ids), (uid) => uid),
  },
  repos: {
    kind: searchKinds.repos,
    shown: 'repository',
    nodes: async (reader, ids) => ofRows(await store.reposOf(reader, ids), (uid) => uid),
  },
  identities: {
    kind: searchKinds.identities,
    shown: 'member',
    nodes: async (reader, ids) => ofRows(await store.identitiesOf(reader, ids), parentOf),
  },
  persons: { kind: searchKinds.persons, shown: 'member', nodes: personsIn },
} as const satisfies Record<string, IndexedKind>

/** People by their role bindings in the scopes. A person with several of them is found by the first. */
async function personsIn(reader: Reader, ids: readonly number[], scopes: readonly string[]): Promise<Node[]> {
  const rows = await store.personsOf(reader, ids)
  const firsts = new Map<string, number>()
  const people = [...new Set(rows.map(({ uid }) => uid))]
  for (const { id, uid, identity } of people.length > 0 ? await store.bindingsOf(reader, people) : []) {
    if (!isIn(parentOf(uid), scopes)) continue
    firsts.set(identity, Math.min(firsts.get(identity) ?? id, id))
  }
  return rows
    .filter(({ id, uid }) => firsts.get(uid) === id)
    .map((row) => ({ ...row, names: [row.name, row.detail], scope: parentOf(row.bindingUid) }))
}

export type NameSearch = { scopes: readonly string[]; text: string; rank: Rank; after: string; most: number }

/** Reads the numbers of the scopes in the index, once for each search. */
export function createNumbers(reader: Reader): ScopeNumbers {
  const known = new Map<string, Promise<number[]>>()
  return (scopes) => {
    const key = scopes.join(' ')
    const numbers =
      known.get(key) ??
      (scopes.includes(top)
        ? Promise.resolve([everything])
        : groupNumbers(reader, scopes).then((numbers) => [...numbers.values()]))
    known.set(key, numbers)
    return numbers
  }
}

export type ScopeNumbers = (scopes: readonly string[]) => Promise<number[]>

/** Results of one kind and rank. `except` is the uid of a group that is not a result. */
export async function findNames(
  reader: Reader,
  numbersIn: ScopeNumbers,
  { kind, shown, nodes }: IndexedKind,
  { scopes, text, rank, after, most }: NameSearch,
  except = '',
): Promise<Chunk> {
  // Every name contains the empty text, at its start.
  if (scopes.length === 0 || (text === '' && rank !== 'prefix')) return nothing
  const numbers = await numbersIn(scopes)
  const index = partRangeOf(text, rank)
  const range: Range<NameRow> = {
    rows(from, limit) {
      const cursor = from && { part: from.key, id: Number(from.tie) }
      return rowsOfScopes(numbers, { atOnce: scopesAtOnce, most: limit }, async (some) => {
        const found = await readParts(reader, kind, some, index, { after: cursor, most: limit })
        return found.map(({ part: key, id: tie }) => ({ key, tie }))
      })
    },
    async load(rows) {
      const found = new Map<number, Node>()
      const ids = [...new Set(rows.map(({ tie }) => tie))]
      for (const node of ids.length > 0 ? await nodes(reader, ids, scopes) : []) found.set(node.id, node)
      const paths = await pathsOf(
        reader,
        [...found.values()].map(({ scope }) => scope),
      )
      return rows.map(({ key, tie }) => {
        const node = found.get(tie)
        if (!node || node.uid === except || !isIn(node.scope, scopes)) return undefined
        if (rankOf(node.names, text) !== rank || !isFirstPart(node.names, index, key)) return undefined
        return toResult(shown, node, rank, paths)
      })
    },
  }
  return readRange(range, after, most)
}

function toResult(kind: Kind, node: Node, match: Rank, paths: ReadonlyMap<string, string>): Result {
  const { uid, name, detail, scope, updateTime } = node
  const path = paths.get(scope) ?? ''
  return { kind, match, name, path, uid, repoUid: '', digest: '', detail, updateTime }
}

/** Paths of groups and repositories, by uid. */
export async function pathsOf(reader: Reader, uids: readonly string[]): Promise<Map<string, string>> {
  const groups = await groupsByUid(reader, uids.flatMap(lineage))
  const others = uids.filter((uid) => !groups.has(uid))
  const repos = others.length > 0 ? await store.reposNamed(reader, [...new Set(others)]) : []
  const names = new Map(repos.map(({ uid, name }) => [uid, name]))
  return new Map(
    uids.map((uid) => [
      uid,
      lineage(uid)
        .reverse()
        .map((one) => groups.get(one)?.name ?? names.get(one) ?? '')
        .join('/'),
    ]),
  )
}

/** Repositories that are themselves scopes, for tokens that are limited to repositories. */
export async function findScopeRepos(reader: Reader, { scopes, text, rank, after, most }: NameSearch): Promise<Chunk> {
  if (scopes.length === 0 || scopes.includes(top)) return nothing
  const repos = await store.reposNamed(reader, scopes)
  const matching = repos.filter(({ uid, name }) => uid > after && rankOf([name], text) === rank)
  const sorted = matching.sort((a, b) => (a.uid < b.uid ? -1 : 1)).slice(0, most)
  const paths = await pathsOf(
    reader,
    sorted.map(({ uid }) => uid),
  )
  const found = sorted.map((node) => {
    const result = toResult('repository', { ...node, names: [node.name], scope: node.uid }, rank, paths)
    return { result, at: node.uid }
  })
  return { found, next: matching.length > most ? found.at(-1)!.at : undefined }
}
