// The history of a tag, and what follows from it.
import { ask } from '../../data/api.ts'
import { type Paged, readNext } from '../../data/list.ts'
import type { Move } from '../../data/types.ts'

const pathOf = (repo: string): string => `/registry/v2/repos/${repo}/tagHistory`

export async function readLastMove(repo: string, tag: string, signal?: AbortSignal): Promise<Move | undefined> {
  const { items } = await readNext<Move>(pathOf(repo), 'records', { size: 1, query: { tag }, signal })
  return items[0]
}

/** The record that was in force at a moment; `undefined` when there was no such tag yet. Asked of the ledger, however old it is. */
export async function readMoveAt(
  repo: string,
  tag: string,
  at: string,
  signal?: AbortSignal,
): Promise<Move | undefined> {
  const endTime = new Date(Date.parse(at) + 1).toISOString()
  const { items } = await readNext<Move>(pathOf(repo), 'records', { size: 1, query: { tag, endTime }, signal })
  return items[0]
}

export type Wanted = {
  tag?: string
  digest?: string
  startTime?: string
  endTime?: string
  after?: string
  size?: number
}

/** A page of records: of a tag or of all of them newest first, of a digest by tag. */
export function readMoves(repo: string, wanted: Wanted, signal?: AbortSignal): Promise<Paged<Move>> {
  const { after = '', size = 200, ...query } = wanted
  return readNext<Move>(pathOf(repo), 'records', { after, size, query, signal })
}

export const isDeletion = ({ event }: Move): boolean => event === 'EVENT_DELETED'

/** True if an update was seen at another registry: it happened at an unknown time before it was seen. */
export const isFromUpstream = ({ source }: Move): boolean => source === 'SOURCE_UPSTREAM'

/** From when to when a tag pointed to a digest; `end` is missing while it does. */
export type Stay = { digest: string; start: number; end: number | undefined; move: Move }

/** The stays that records tell of, oldest first. */
export function staysOf(records: readonly Move[]): Stay[] {
  return records
    .filter((one) => !isDeletion(one))
    .map((move) => ({
      digest: move.digest,
      start: Date.parse(move.time),
      end: move.endTime ? Date.parse(move.endTime) : undefined,
      move,
    }))
    .sort((a, b) => a.start - b.start)
}

/** True if the repository has the digest now, as a pin needs it. */
export function readArchitectures(
  repo: string,
  digest: string,
  signal?: AbortSignal,
): Promise<{ architectures: string[] }> {
  return ask('GET', `/registry/v2/repos/${repo}/digests/${digest}/architectures`, { signal })
}
