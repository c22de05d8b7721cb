// Splits a zstd stream (RFC 8878) into frames. The decompressor stops after one frame, so each frame is passed to a separate
// decompressor.

const frameMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])
const skippableEnd = Buffer.from([0x2a, 0x4d, 0x18])

/** True if a stream that begins with these four bytes is compressed with zstd. */
export function isZstd(head: Uint8Array): boolean {
  return frameMagic.equals(head.subarray(0, 4)) || isSkippable(head)
}

/** Skippable frames have one of 16 magic numbers, which differ only in the first byte. */
const isSkippable = (head: Uint8Array): boolean =>
  (head[0] ?? 0) >> 4 === 5 && skippableEnd.equals(Buffer.from(head.subarray(1, 4)))

/** Yields the bytes of the stream without skippable frames. Each piece belongs to one frame. */
export async function* piecesOfFrames(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const walk = new FrameWalk()
  for await (const chunk of chunks) yield* walk.piecesOf(chunk)
  if (!walk.isBetweenFrames) throw new Error('a zstd frame is cut off')
}

/** Phases in the order in which a frame contains them. Bytes of `fields`, `data` and `checksum` are only counted. */
type Phase = 'magic' | 'skipSize' | 'skip' | 'descriptor' | 'fields' | 'block' | 'data' | 'checksum'
const lengths = { magic: 4, skipSize: 4, descriptor: 1, block: 3, checksum: 4 }
const dropped: ReadonlySet<Phase> = new Set(['magic', 'skipSize', 'skip'])

class FrameWalk {
  #phase: Phase = 'magic'
  #left = lengths.magic
  #head: number[] = []
  #hasChecksum = false
  #isLast = false
  /** Beginning of a frame that was not passed on yet. */
  #prefix: Uint8Array = Buffer.alloc(0)

  get isBetweenFrames(): boolean {
    return this.#phase === 'magic' && this.#left === lengths.magic
  }

  *piecesOf(chunk: Uint8Array): Generator<Uint8Array> {
    let start = 0
    for (let at = 0; at < chunk.length; ) {
      const length = Math.min(this.#left, chunk.length - at)
      if (this.#phase in lengths) this.#head.push(...chunk.subarray(at, at + length))
      at += length
      this.#left -= length
      if (dropped.has(this.#phase)) start = at
      while (this.#left === 0) {
        this.#next()
        if (!this.isBetweenFrames) continue
        if (at > start) yield this.#piece(chunk.subarray(start, at))
        start = at
      }
    }
    if (start < chunk.length) yield this.#piece(chunk.subarray(start))
  }

  #piece(bytes: Uint8Array): Uint8Array {
    const prefix = this.#prefix
    this.#prefix = Buffer.alloc(0)
    return prefix.length === 0 ? bytes : Buffer.concat([prefix, bytes])
  }

  #next(): void {
    const head = Buffer.from(this.#head)
    const [phase, length] = this.#phaseAfter(head)
    this.#phase = phase
    this.#left = length
    this.#head = []
  }

  #phaseAfter(head: Buffer): [phase: Phase, length: number] {
    const between: [Phase, number] = ['magic', lengths.magic]
    if (this.#phase === 'magic') return this.#begin(head)
    if (this.#phase === 'skipSize') return ['skip', head.readUInt32LE()]
    if (this.#phase === 'skip' || this.#phase === 'checksum') return between
    if (this.#phase === 'descriptor') return ['fields', this.#fieldsAfter(head[0]!)]
    if (this.#phase === 'block') return ['data', this.#dataAfter(head.readUIntLE(0, 3))]
    if (this.#phase === 'fields' || !this.#isLast) return ['block', lengths.block]
    return this.#hasChecksum ? ['checksum', lengths.checksum] : between
  }

  #begin(magic: Buffer): [phase: Phase, length: number] {
    if (isSkippable(magic)) return ['skipSize', lengths.skipSize]
    if (!frameMagic.equals(magic)) throw new Error('no zstd frame follows')
    this.#prefix = magic
    return ['descriptor', lengths.descriptor]
  }

  /** Length of the fields for window, dictionary and size. */
  #fieldsAfter(descriptor: number): number {
    const isSingle = (descriptor & 0x20) !== 0
    this.#hasChecksum = (descriptor & 0x04) !== 0
    const sizes = [isSingle ? 1 : 0, 2, 4, 8]
    return (isSingle ? 0 : 1) + [0, 1, 2, 4][descriptor & 3]! + sizes[descriptor >> 6]!
  }

  /** Length of a block's data. A block of one repeated byte stores only this byte. */
  #dataAfter(header: number): number {
    this.#isLast = (header & 1) === 1
    const type = (header >> 1) & 3
    if (type === 3) throw new Error('a zstd block is of no known type')
    return type === 1 ? 1 : header >> 3
  }
}
