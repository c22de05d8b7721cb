import type { FileHandle } from 'node:fs/promises'
import type { Writable } from 'node:stream'

/** Larger reads are not faster (measured). */
const chunkBytes = 1 << 20

/**
 * Writes a part of a file and ends the target. Two buffers take turns, one being read into while the other is sent; a
 * stream would make one for each chunk, and making and collecting them costs more than the reading.
 */
export async function sendFile(file: FileHandle, target: Writable, start: number, size: number): Promise<void> {
  const length = Math.min(chunkBytes, size)
  const buffers = [Buffer.allocUnsafeSlow(length), Buffer.allocUnsafeSlow(size > length ? length : 0)]
  const sent: Promise<void>[] = [Promise.resolve(), Promise.resolve()]
  const gone = new Promise<never>((_, reject) => {
    target.once('close', () => reject(new Error('the client went away')))
  })
  gone.catch(() => {})
  let at = start
  for (let turn = 0; at < start + size; turn ^= 1) {
    await Promise.race([sent[turn], gone])
    const { bytesRead } = await file.read(buffers[turn]!, 0, Math.min(length, start + size - at), at)
    if (bytesRead === 0) throw new Error('the file is shorter than it was')
    at += bytesRead
    sent[turn] = write(target, buffers[turn]!.subarray(0, bytesRead))
  }
  await Promise.race([Promise.all(sent), gone])
  target.end()
}

/** Resolves when the chunk may be written over. */
function write(target: Writable, chunk: Buffer): Promise<void> {
  const written = new Promise<void>((resolve, reject) => {
    target.write(chunk, (error) => (error ? reject(error) : resolve()))
  })
  // Looked at two chunks later.
  written.catch(() => {})
  return written
}
