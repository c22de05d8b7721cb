// Writer of items that are noted in memory and written a little later, in batches. Callers do not wait for the disk.
import { chunks } from '../chunks.ts'

export type BatchWriter = {
  /** Writes what has been noted by now, never twice at once, and answers with how much that was. */
  flush(): Promise<number>
  /** Writes the remaining items. Passes an error to `failed`; the items of that batch are lost. */
  close(): Promise<void>
}

export type Noted<T> = {
  /** Hands out what is noted, in the order in which it is to be written; it is noted no more. */
  take(): T[]
  /** Notes again what could not be written. */
  putBack(left: readonly T[]): void
  /** Writes a batch in one transaction. Answers with how much that was. */
  write(batch: readonly T[]): Promise<number>
  perBatch: number
  failed(error: unknown): void
}

/** A failed batch is noted again with all behind it, and `flush` throws. */
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

/** By their keys, so that every node writes in the same order and no two wait for each other's rows. */
export function inOrder<T>(noted: Iterable<[string, T]>): [string, T][] {
  return [...noted].sort(([a], [b]) => (a < b ? -1 : 1))
}
