// Reads rows of a table in a SQLite database file (https://sqlite.org/fileformat2.html) without SQLite. The file comes from an
// untrusted image, and only its blobs are needed.
import { Unreadable } from '../../packages.ts'
import type { SqliteLog } from './sqlite-log.ts'

export const sqliteMagic = Buffer.from('SQLite format 3\0')
const leaf = 0x0d
const interior = 0x05

/**
 * Yields the first blob of each row. Yields undefined if the row has no blob, or if the blob is larger than `mostBytes`. Pages of
 * the write-ahead log replace those of the file.
 */
export function* blobsInSqlite(
  bytes: Buffer,
  table: string,
  mostBytes: number,
  log?: SqliteLog,
): Generator<Buffer | undefined> {
  const file = new File(bytes, mostBytes, log)
  let root: number | undefined
  for (const row of file.rows(1)) {
    const [type, name, , page] = row ? valuesOf(row) : []
    if (type?.toString() === 'table' && name?.toString() === table) root = numberIn(page)
  }
  if (root === undefined) throw damaged()
  for (const row of file.rows(root)) yield row && valuesOf(row, true).find((value) => value !== undefined)
}

class File {
  readonly #bytes: Buffer
  readonly #pageSize: number
  readonly #usable: number
  readonly #mostBytes: number
  readonly #log: SqliteLog | undefined
  /** Pages that were read. In a valid file, no page belongs to two trees or rows. */
  readonly #seen = new Set<number>()

  constructor(bytes: Buffer, mostBytes: number, log: SqliteLog | undefined) {
    if (bytes.length < 512) throw damaged()
    const size = bytes.readUInt16BE(16)
    this.#bytes = bytes
    this.#pageSize = size === 1 ? 65_536 : size
    this.#log = log && log.count > 0 ? log : undefined
    if (this.#log && this.#log.pageSize !== this.#pageSize) {
      throw new Unreadable('DAMAGED', 'the write-ahead log and the SQLite database have different page sizes')
    }
    this.#usable = this.#pageSize - bytes[20]!
    this.#mostBytes = mostBytes
    const isPower = this.#pageSize >= 512 && (this.#pageSize & (this.#pageSize - 1)) === 0
    if (!isPower || this.#usable < 480) throw damaged()
  }

  /** Records of the table whose tree begins at page `root`. Yields undefined for a record that is too large. */
  *rows(root: number): Generator<Buffer | undefined> {
    const left = [root]
    for (let number = left.pop(); number !== undefined; number = left.pop()) {
      const page = this.#page(number)
      const start = number === 1 ? 100 : 0
      const [type, cells] = [page[start], page.readUInt16BE(start + 3)]
      if (type !== leaf && type !== interior) throw damaged()
      const pointers = start + (type === leaf ? 8 : 12)
      if (pointers + 2 * cells > this.#usable) throw damaged()
      if (type === interior) left.push(page.readUInt32BE(start + 8))
      for (let i = 0; i < cells; i++) {
        const cell = page.readUInt16BE(pointers + 2 * i)
        if (cell + 4 > this.#usable) throw damaged()
        if (type === interior) left.push(page.readUInt32BE(cell))
        else yield this.#record(page, cell)
      }
    }
  }

  #page(number: number): Buffer {
    const logged = this.#log?.pages.get(number)
    const bytes = logged === undefined ? this.#bytes : this.#log!.bytes
    const start = logged ?? (number - 1) * this.#pageSize
    const isInside = number >= 1 && number <= (this.#log?.count ?? number) && start + this.#pageSize <= bytes.length
    if (!isInside || this.#seen.has(number)) throw damaged()
    this.#seen.add(number)
    return bytes.subarray(start, start + this.#pageSize)
  }

  /** Joins the part of a record in its page and the rest in overflow pages. */
  #record(page: Buffer, cell: number): Buffer | undefined {
    const [size, afterSize] = varint(page, cell)
    const [, start] = varint(page, afterSize)
    const local = this.#localPart(size)
    if (start + local + (local < size ? 4 : 0) > this.#usable) throw damaged()
    if (size > this.#mostBytes) return undefined
    const parts = [page.subarray(start, start + local)]
    let next = local < size ? page.readUInt32BE(start + local) : 0
    for (let left = size - local; left > 0; left -= this.#usable - 4) {
      const more = this.#page(next)
      next = more.readUInt32BE(0)
      parts.push(more.subarray(4, 4 + Math.min(left, this.#usable - 4)))
    }
    return Buffer.concat(parts)
  }

  #localPart(size: number): number {
    const most = this.#usable - 35
    if (size <= most) return size
    const least = Math.floor(((this.#usable - 12) * 32) / 255) - 23
    const some = least + ((size - least) % (this.#usable - 4))
    return some <= most ? some : least
  }
}

/** Values of a record as bytes. With `blobs`, returns only values that SQLite stores as blobs. */
function valuesOf(record: Buffer, blobs = false): (Buffer | undefined)[] {
  const [headerSize, first] = varint(record, 0)
  const values: (Buffer | undefined)[] = []
  let at = headerSize
  for (let i = first; i < headerSize; ) {
    const [type, next] = varint(record, i)
    i = next
    const length = lengthOf(type)
    if (at + length > record.length) throw damaged()
    const isWanted = !blobs || (type >= 12 && type % 2 === 0)
    values.push(isWanted ? record.subarray(at, at + length) : undefined)
    at += length
  }
  return values
}

const lengths = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0]
const lengthOf = (type: number): number => lengths[type] ?? Math.max(0, (type - 12) >> 1)

const numberIn = (value: Buffer | undefined): number =>
  value && value.length > 0 && value.length <= 4 ? value.readUIntBE(0, value.length) : 0

/**
 * Reads a number of up to nine bytes. Returns the number and the position after it. Numbers in real files fit into a JavaScript
 * number.
 */
function varint(bytes: Buffer, start: number): [value: number, end: number] {
  let value = 0
  for (let i = 0; i < 8; i++) {
    const byte = bytes[start + i]
    if (byte === undefined) throw damaged()
    value = value * 128 + (byte & 0x7f)
    if (byte < 0x80) return [value, start + i + 1]
  }
  throw damaged()
}

const damaged = () => new Unreadable('DAMAGED', 'the SQLite database is damaged')
