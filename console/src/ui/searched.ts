// Lists with a search. The address contains the search terms.
import { go } from '../app/route.ts'
import type { Query } from '../data/api.ts'
import { type Paged, readPage } from '../data/list.ts'
import { type Loaded, useLoad } from './load.ts'
import { pageOf } from './table.tsx'

type Props = {
  path: string
  member: string
  /** Address of the list. */
  at: string
  query: URLSearchParams
  /** Parameters of the address that contain the search terms. */
  names: readonly string[]
  /** Names of the same parameters in the API. */
  asked: (values: Record<string, string>) => Query
}

export type Searched<T> = {
  /** Search terms by parameter. Empty if the address does not have the parameter. */
  values: Record<string, string>
  page: number
  size: number
  read: Loaded<Paged<T>>
  /** Opens the first page of a new search. */
  search: (values: Record<string, string>) => void
}

const size = 50

export function useSearched<T>({ path, member, at, query, names, asked }: Props): Searched<T> {
  const values = Object.fromEntries(names.map((name) => [name, query.get(name) ?? '']))
  const page = pageOf(query)
  const key = names.map((name) => values[name]).join(' ')
  const read = useLoad(`${path} ${key} ${page}`, (signal) =>
    readPage<T>(path, member, { page, size, query: asked(values), signal }),
  )
  const search = (typed: Record<string, string>) => {
    const wanted = names.filter((name) => typed[name]).map((name) => [name, typed[name]!])
    go(`${at}?${new URLSearchParams(wanted)}`)
  }
  return { values, page, size, read, search }
}
