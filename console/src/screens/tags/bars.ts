// Selection of a bar in the timeline by a key.
import type { Assignment } from './moves.ts'

/**
 * Left and Right move through time. Up and Down move between bars of the same digest. Home and End move to the first and the last
 * bar.
 */
export function nextBar(
  assignments: readonly Pick<Assignment, 'digest'>[],
  at: number,
  key: string,
): number | undefined {
  const last = assignments.length - 1
  const inLane = (by: 1 | -1) => {
    for (let i = at + by; i >= 0 && i <= last; i += by) if (assignments[i]!.digest === assignments[at]!.digest) return i
    return at
  }
  const to: Record<string, () => number> = {
    ArrowLeft: () => Math.max(at - 1, 0),
    ArrowRight: () => Math.min(at + 1, last),
    ArrowUp: () => inLane(-1),
    ArrowDown: () => inLane(1),
    Home: () => 0,
    End: () => last,
  }
  return to[key]?.()
}
