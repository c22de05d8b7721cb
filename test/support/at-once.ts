/**
 * Calls `work` with each number from 0 to `count - 1`, in the given number of parallel lanes. A lane makes one call after the
 * other.
 */
export async function atOnce(
  lanes: number,
  count: number,
  work: (index: number, lane: number) => Promise<unknown>,
): Promise<void> {
  let next = 0
  const runLane = async (_: unknown, lane: number) => {
    while (next < count) await work(next++, lane)
  }
  await Promise.all(Array.from({ length: lanes }, runLane))
}
