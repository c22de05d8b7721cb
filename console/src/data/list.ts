// Lists of the API, which are read one page at a time.
import { ask, type Query } from './api.ts'

export type Paged<T> = { items: T[]; total: number | undefined; next: string }

/** One page of a list with page numbers, from 1. */
export async function readPage<T>(
  path: string,
  member: string,
  {
    page = 1,
    size = 50,
    query = {},
    signal,
  }: { page?: number; size?: number; query?: Query; signal?: AbortSignal | undefined },
): Promise<Paged<T>> {
  const asked = { ...query, pageSize: size, ...(page > 1 && { skip: (page - 1) * size }) }
  return read(path, member, asked, signal)
}

/** One page of a list without page numbers. */
export function readNext<T>(
  path: string,
  member: string,
  {
    after = '',
    size = 200,
    query = {},
    signal,
  }: { after?: string; size?: number; query?: Query; signal?: AbortSignal | undefined },
): Promise<Paged<T>> {
  return read(path, member, { ...query, pageSize: size, pageToken: after }, signal)
}

async function read<T>(path: string, member: string, query: Query, signal?: AbortSignal): Promise<Paged<T>> {
  const answer = await ask<Record<string, unknown>>('GET', path, { query, signal })
  const { nextPageToken = '', totalCount } = answer as { nextPageToken?: string; totalCount?: string }
  return {
    items: (answer[member] ?? []) as T[],
    total: totalCount === undefined ? undefined : Number(totalCount),
    next: nextPageToken,
  }
}
