// Reader of hash databases in the Berkeley format. The file `Packages` of rpm up to version 4.15 has this format.
import { Unreadable } from '../../packages.ts'

const hashMagic = 0x061561
const pageTypes = { free: 0, unsorted: 2, overflow: 7, hashMeta: 8, hash: 13 }
const itemTypes = { inline: 1, offPage: 3 }
const pageHead = 26

/** True if the file has the Berkeley hash format, in either byte order. */
export const isBerkeleyHash = (bytes: Buffer): boolean =>
  bytes.length >= 512 && (bytes.readUInt32LE(12) === hashMagic || bytes.readUInt32BE(12) === hashMagic)

/**
 * Yields the value of each key. The key 0 is left out, because its value is the number of packages. Yields undefined for a value
 * that is larger than `mostBytes` or incomplete. Throws Unreadable at the end if there are fewer keys than the first page states.
 */
export function* valuesInBerkeleyHash(bytes: Buffer, mostBytes: number): Generator<Buffer | undefined> {
  const file = new File(bytes, mostBytes)
  for (let number = 1; number <= file.lastPage; number++) yield* file.valuesIn(number)
  if (file.pairsSeen < file.pairs) throw damaged()
}

class File {
  readonly #bytes: Buffer
  readonly #isLittle: boolean
  readonly #pageSize: number
  readonly #mostBytes: number
  readonly lastPage: number
  /** Number of keys that the first page states. */
  readonly pairs: number
  pairsSeen = 0
  /** Overflow pages that already belong to a value. */
  readonly #seen = new Set<number>()

  constructor(bytes: Buffer, mostBytes: number) {
    this.#bytes = bytes
    this.#isLittle = bytes.readUInt32LE(12) === hashMagic
    this.#mostBytes = mostBytes
    this.#pageSize = this.#u32(20)
    const isPower = this.#pageSize >= 512 && this.#pageSize <= 65_536 && (this.#pageSize & (this.#pageSize - 1)) === 0
    // The byte before the page type is the encryption. Encrypted pages are not supported.
    if (!isPower || bytes[25] !== pageTypes.hashMeta || bytes[24] !== 0) throw damaged()
    this.lastPage = this.#u32(32)
    this.pairs = this.#u32(88)
    if ((this.lastPage + 1) * this.#pageSize > bytes.length) throw damaged()
  }

  *valuesIn(number: number): Generator<Buffer | undefined> {
    const page = number * this.#pageSize
    const type = this.#bytes[page + 25]
    if (type === pageTypes.free || type === pageTypes.overflow) return
    if (type !== pageTypes.hash && type !== pageTypes.unsorted) throw damaged()
    const items = this.#u16(page + 20)
    if (items % 2 !== 0 || pageHead + 2 * items > this.#pageSize) throw damaged()
    // The page stores keys and values alternately, beginning at its end.
    for (let i = 0; i < items; i += 2) {
      const [key, value] = [this.#itemAt(page, i), this.#itemAt(page, i + 1)]
      this.pairsSeen++
      const isCount = key.length === 5 && key.subarray(1).every((byte) => byte === 0)
      if (!isCount) yield this.#valueOf(value)
    }
  }

  #itemAt(page: number, i: number): Buffer {
    const start = this.#u16(page + pageHead + 2 * i)
    const end = i === 0 ? this.#pageSize : this.#u16(page + pageHead + 2 * (i - 1))
    if (start < pageHead || start >= end || end > this.#pageSize) throw damaged()
    return this.#bytes.subarray(page + start, page + end)
  }

  #valueOf(item: Buffer): Buffer | undefined {
    if (item[0] === itemTypes.inline) return item.subarray(1)
    if (item[0] !== itemTypes.offPage || item.length < 12) return undefined
    const [first, length] = this.#isLittle
      ? [item.readUInt32LE(4), item.readUInt32LE(8)]
      : [item.readUInt32BE(4), item.readUInt32BE(8)]
    return length > this.#mostBytes ? undefined : this.#overflow(first, length)
  }

  /** Value in a chain of overflow pages. Undefined if the chain is shorter than `length`. */
  #overflow(first: number, length: number): Buffer | undefined {
    const parts: Buffer[] = []
    let size = 0
    for (let number = first; number !== 0; ) {
      const page = number * this.#pageSize
      if (number > this.lastPage || this.#seen.has(number) || this.#bytes[page + 25] !== pageTypes.overflow) {
        return undefined
      }
      this.#seen.add(number)
      const used = this.#u16(page + 22)
      if (pageHead + used > this.#pageSize) return undefined
      parts.push(this.#bytes.subarray(page + pageHead, page + pageHead + used))
      size += used
      number = this.#u32(page + 16)
    }
    return size === length ? Buffer.concat(parts) : undefined
  }

  #u32(at: number): number {
    return this.#isLittle ? this.#bytes.readUInt32LE(at) : this.#bytes.readUInt32BE(at)
  }
  #u16(at: number): number {
    return this.#isLittle ? this.#bytes.readUInt16LE(at) : this.#bytes.readUInt16BE(at)
  }
}

const damaged = () => new Unreadable('DAMAGED', 'the Berkeley DB file is damaged')
