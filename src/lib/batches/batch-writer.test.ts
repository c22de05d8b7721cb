import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBatchWriter } from './batch-writer.ts'

/** Writer of a list of numbers, in batches of two. After `hold`, writes wait until the returned function is called. */
function writerOf(...first: number[]) {
  let noted = first
  const written: number[][] = []
  const errors: unknown[] = []
  let gate: Promise<void> | undefined
  let broken: number | undefined
  const writer = createBatchWriter<number>({
    take: () => {
      const all = noted
      noted = []
      return all
    },
    putBack: (left) => void noted.push(...left),
    async write(batch) {
      await gate
      if (broken !== undefined && batch.includes(broken)) throw new Error('down')
      written.push([...batch])
      return batch.length
    },
    perBatch: 2,
    failed: (error) => errors.push(error),
  })
  return {
    ...writer,
    written,
    errors,
    note: (one: number) => void noted.push(one),
    breakAt: (one: number | undefined) => {
      broken = one
    },
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      gate = promise
      return resolve
    },
  }
}

test('writes each item once, in batches, one batch at a time', async () => {
  const writer = writerOf(1, 2, 3)
  const release = writer.hold()
  const both = [writer.flush(), writer.flush()]
  writer.note(4)
  release()
  assert.deepEqual(await Promise.all(both), [3, 3])
  assert.deepEqual(writer.written, [[1, 2], [3]])
  assert.equal(await writer.flush(), 1)
  assert.equal(await writer.flush(), 0)
})

test('keeps a failed batch, and everything behind it, for the next flush', async () => {
  const writer = writerOf(1, 2, 3, 4, 5)
  writer.breakAt(3)
  await assert.rejects(writer.flush(), /down/)
  assert.deepEqual(writer.written, [[1, 2]])
  writer.breakAt(undefined)
  assert.equal(await writer.flush(), 3)
  assert.deepEqual(writer.written.flat(), [1, 2, 3, 4, 5])
})

test('close writes the current batch and all later items, and reports a failure', async () => {
  const writer = writerOf(1)
  const release = writer.hold()
  const flushed = writer.flush()
  writer.note(2)
  const closed = writer.close()
  release()
  await Promise.all([flushed, closed])
  assert.deepEqual(writer.written, [[1], [2]])
  writer.note(3)
  writer.breakAt(3)
  await writer.close()
  assert.match(String(writer.errors), /down/)
})
