// Reads the write-ahead log of a SQLite database (https://sqlite.org/fileformat2.html#walformat).

export type SqliteLog = {
  bytes: Buffer
  /** Size of a page in bytes. Differs from the database if the log belongs to another database. */
  pageSize: number
  /** Positions of pages in the log, by page number. Pages of committed transactions replace the pages of the database. */
  pages: ReadonlyMap<number, number>
  /** Number of pages in the database after the last transaction. Zero if no transaction was committed. */
  count: number
  /** Reason why a part of the log cannot be used. Undefined for a complete log. */
  damage?: string
}

const headerBytes = 32
const frameHeaderBytes = 24
const magic = 0x377f0682
const version = 3_007_000
/** SQLite adds one to the first salt each time that it starts again at the beginning of the log. */
const mostRestarts = 2 ** 16

/** Reads the committed transactions, as SQLite does after a crash. Never throws an error. */
export function readSqliteLog(bytes: Buffer): SqliteLog {
  const pages = new Map<number, number>()
  const stopped = (damage: string): SqliteLog => ({ bytes, pageSize: 0, pages, count: 0, damage })
  if (bytes.length < headerBytes) return stopped('the write-ahead log is incomplete')
  const [first, format, size] = [bytes.readUInt32BE(0), bytes.readUInt32BE(4), bytes.readUInt32BE(8)]
  const isPower = size >= 512 && size <= 65_536 && (size & (size - 1)) === 0
  const sums = new Checksums(bytes, first === magic + 1)
  sums.add(0, headerBytes - 8)
  const isKnown = (first === magic || first === magic + 1) && format === version && isPower
  if (!isKnown || !sums.areAt(headerBytes - 8)) return stopped('the write-ahead log has no valid header')

  const log: SqliteLog = { bytes, pageSize: size, pages, count: 0 }
  let open: [number: number, position: number][] = []
  let at = headerBytes
  for (; at + frameHeaderBytes + size <= bytes.length; at += frameHeaderBytes + size) {
    if (!bytes.subarray(at + 8, at + 16).equals(bytes.subarray(16, 24))) {
      if (isFromBefore(bytes.subarray(at + 8, at + 16), bytes.subarray(16, 24))) at = bytes.length
      break
    }
    sums.add(at, at + 8)
    sums.add(at + frameHeaderBytes, at + frameHeaderBytes + size)
    const [number, count] = [bytes.readUInt32BE(at), bytes.readUInt32BE(at + 4)]
    if (!sums.areAt(at + 16) || number === 0) break
    open.push([number, at + frameHeaderBytes])
    if (count === 0) continue
    for (const [one, position] of open) pages.set(one, position)
    log.count = count
    open = []
  }
  if (at < bytes.length) return { ...log, damage: 'the write-ahead log is damaged or incomplete' }
  if (open.length > 0) return { ...log, damage: 'the last transaction in the write-ahead log is incomplete' }
  return log
}

/**
 * True if the salts of a frame are from before the last restart, which changes both salts. SQLite overwrites such frames one by
 * one.
 */
function isFromBefore(salts: Buffer, current: Buffer): boolean {
  const restarts = (current.readUInt32BE(0) - salts.readUInt32BE(0)) >>> 0
  return restarts > 0 && restarts < mostRestarts && salts.readUInt32BE(4) !== current.readUInt32BE(4)
}

/** Sums over all frames so far. SQLite stores them in each frame, so a frame is valid only after valid frames. */
class Checksums {
  readonly #bytes: Buffer
  readonly #isBig: boolean
  #one = 0
  #other = 0

  constructor(bytes: Buffer, isBig: boolean) {
    this.#bytes = bytes
    this.#isBig = isBig
  }

  add(start: number, end: number): void {
    let [one, other] = [this.#one, this.#other]
    for (let at = start; at < end; at += 8) {
      one = (one + this.#number(at) + other) >>> 0
      other = (other + this.#number(at + 4) + one) >>> 0
    }
    this.#one = one
    this.#other = other
  }

  /** True if both sums are stored at this position. */
  areAt(at: number): boolean {
    return this.#bytes.readUInt32BE(at) === this.#one && this.#bytes.readUInt32BE(at + 4) === this.#other
  }

  #number(at: number): number {
    return this.#isBig ? this.#bytes.readUInt32BE(at) : this.#bytes.readUInt32LE(at)
  }
}
