// Requests for the tag history.
import { ask } from '../../data/api.ts'
import { type Paged, readNext } from '../../data/list.ts'
import type { Move } from '../../data/types.ts'

const pathOf = (repo: string): string => `/registry/v2/repos/${repo}/tagHistory`

export async function readLastMove(repo: string, tag: string, signal?: AbortSignal): Promise<Move | undefined> {
  const { items } = await readNext<Move>(pathOf(repo), 'records', { size: 1, query: { tag }, signal })
  return items[0]
}

/** Finds the record of the tag history that applied at a time. Returns `undefined` if the tag did not exist yet. */
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

/** Reads a page of records. Records of a tag are sorted by time, newest first. Records of a digest are sorted by tag. */
export function readMoves(repo: string, wanted: Wanted, signal?: AbortSignal): Promise<Paged<Move>> {
  const { after = '', size = 200, ...query } = wanted
  return readNext<Move>(pathOf(repo), 'records', { after, size, query, signal })
}

export const isDeletion = ({ event }: Move): boolean => event === 'EVENT_DELETED'

/** True if the update happened at an upstream. Its exact time is unknown: it is before the check that found the update. */
export const isFromUpstream = ({ source }: Move): boolean => source === 'SOURCE_UPSTREAM'

/** Time during which a tag pointed to a digest. `end` is missing if the tag still does. */
export type Assignment = { digest: string; start: number; end: number | undefined; move: Move }

/** Converts records to times with one digest each, oldest first. */
export function toAssignments(records: readonly Move[]): Assignment[] {
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

/** Architectures of the images of a digest. */
export function readArchitectures(
  repo: string,
  digest: string,
  signal?: AbortSignal,
): Promise<{ architectures: string[] }> {
  return ask('GET', `/registry/v2/repos/${repo}/digests/${digest}/architectures`, { signal })
}
