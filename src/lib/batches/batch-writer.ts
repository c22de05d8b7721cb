// Writer of items that are noted in memory and written a little later, in batches. Callers do not wait for the disk.
import { chunks } from '../chunks.ts'

export type BatchWriter = {
  /** Writes the items noted so far, one batch at a time, and returns their number. */
  flush(): Promise<number>
  /** Writes the remaining items. Passes an error to `failed`; the items of that batch are lost. */
  close(): Promise<void>
}

export type Noted<T> = {
  /** Takes the noted items out, in the order in which they are to be written. */
  take(): T[]
  /** Puts items back that could not be written. */
  putBack(left: readonly T[]): void
  /** Writes a batch in one transaction. Returns the number of items written. */
  write(batch: readonly T[]): Promise<number>
  perBatch: number
  failed(error: unknown): void
}

/** If a batch fails, it and all items behind it are noted again, and `flush` throws. */
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
