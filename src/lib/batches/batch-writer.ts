// Collects items in memory, and writes them a little later in batches. So callers do not wait for the disk.
import { chunks } from '../chunks.ts'

export type BatchWriter = {
  /** Writes the collected items, one batch at a time. Returns their number. */
  flush(): Promise<number>
  /** Writes the remaining items. If a batch fails, calls `failed` and drops the items of the batch. */
  close(): Promise<void>
}

export type Noted<T> = {
  /** Removes and returns the collected items, in the order in which they are written. */
  take(): T[]
  /** Puts items back that could not be written. */
  putBack(left: readonly T[]): void
  /** Writes a batch in one transaction. Returns the number of items written. */
  write(batch: readonly T[]): Promise<number>
  perBatch: number
  failed(error: unknown): void
}

/** Creates the writer. If a batch fails, puts back its items and all later ones, and `flush` throws. */
export function createBatchWriter<T>({ take, putBack, write, perBatch, failed }: Noted<T>): BatchWriter {
  let writing: Promise<number> | undefined
  const writeAll = async (): Promise<number> => {
    const batches = chunks(take(), perBatch)
    let written = 0
    for (const [i, batch] of batches.entries()) {
      try {
        written += await write(batch)
      } catch (error) {
        putBack(batches.slice(i).flat())
        throw error
      }
    }
    return written
  }
  const flush = (): Promise<number> => {
    writing ??= writeAll().finally(() => {
      writing = undefined
    })
    return writing
  }
  return {
    flush,
    async close() {
      await writing?.catch(() => {})
      await flush().catch(failed)
    },
  }
}

/** Sorted by key. All nodes write rows in the same order, so two nodes never wait for each other. */
export function inOrder<T>(noted: Iterable<[string, T]>): [string, T][] {
  return [...noted].sort(([a], [b]) => (a < b ? -1 : 1))
}
