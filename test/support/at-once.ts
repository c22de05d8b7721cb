/** Does `work` for 0 to `count - 1`, in so many lanes at a time. */
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
