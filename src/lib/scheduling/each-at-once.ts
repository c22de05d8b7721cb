/** Runs the work for each item, at most `atOnce` at a time. Rejects with the first failure. */
export async function eachAtOnce<T>(atOnce: number, all: Iterable<T>, work: (one: T) => Promise<void>): Promise<void> {
  const waiting = all[Symbol.iterator]()
  const workers = Array.from({ length: atOnce }, async () => {
    for (let next = waiting.next(); !next.done; next = waiting.next()) await work(next.value)
  })
  await Promise.all(workers)
}
