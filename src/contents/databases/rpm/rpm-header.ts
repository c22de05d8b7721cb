// Header of one package in an rpm database. The header is an index of tags and the data that the tags point to. All numbers are
// big-endian.
import { Unreadable } from '../../packages.ts'

export type RpmHeader = {
  name: string
  version: string
  release: string
  /** Empty if the package has no epoch. A missing epoch equals 0. */
  epoch: string
  arch: string
  /** File name of the source package. */
  source: string
  /** `name:stream:version:context` of the module, or empty. */
  module: string
  /**
   * Paths of the package's files, without a leading slash. Each path and each folder reduces the budget by one. When the budget
   * is used up, the list ends.
   */
  files: (budget: FileBudget) => Generator<string>
}

export type FileBudget = { left: number }

const tags = {
  ...{ name: 1000, version: 1001, release: 1002, epoch: 1003, arch: 1022, source: 1044, module: 5096 },
  ...{ oldFiles: 1027, folderNumbers: 1116, names: 1117, folders: 1118 },
}
const types = { int32: 4, string: 6, strings: 8, translated: 9 }
const entryBytes = 16
const maxTags = 65_535
const maxString = 4096

type IndexEntry = { type: number; offset: number; count: number }

/** Reads a package header. Throws Unreadable if the header is damaged. */
export function readRpmHeader(blob: Buffer): RpmHeader {
  const header = new Header(blob)
  return {
    name: header.text(tags.name),
    version: header.text(tags.version),
    release: header.text(tags.release),
    epoch: header.number(tags.epoch),
    arch: header.text(tags.arch),
    source: header.text(tags.source),
    module: header.text(tags.module),
    files: (budget) => header.files(budget),
  }
}

class Header {
  readonly #blob: Buffer
  readonly #data: number
  readonly #end: number
  readonly #index = new Map<number, IndexEntry>()

  constructor(blob: Buffer) {
    if (blob.length < 8) throw damaged()
    const [entries, bytes] = [blob.readUInt32BE(0), blob.readUInt32BE(4)]
    this.#blob = blob
    this.#data = 8 + entries * entryBytes
    this.#end = this.#data + bytes
    if (entries === 0 || entries > maxTags || this.#end > blob.length) throw damaged()
    for (let at = 8; at < this.#data; at += entryBytes) {
      const [tag, type] = [blob.readUInt32BE(at), blob.readUInt32BE(at + 4)]
      const [offset, count] = [blob.readInt32BE(at + 8), blob.readUInt32BE(at + 12)]
      if (!this.#index.has(tag)) this.#index.set(tag, { type, offset, count })
    }
  }

  text(tag: number): string {
    const entry = this.#index.get(tag)
    if (!entry) return ''
    if (entry.type !== types.string && entry.type !== types.translated) throw damaged()
    return this.#stringAt(this.#positionOf(entry, 1)).text
  }

  number(tag: number): string {
    const entry = this.#index.get(tag)
    if (!entry) return ''
    if (entry.type !== types.int32 || entry.count < 1) throw damaged()
    return String(this.#blob.readUInt32BE(this.#positionOf(entry, 4)))
  }

  /** Yields full paths. Since rpm 4, headers store folders and file names separately. */
  *files(budget: FileBudget): Generator<string> {
    const folders: string[] = []
    for (const folder of this.#strings(tags.folders)) {
      if (budget.left-- <= 0) return
      folders.push(folder)
    }
    const numbers = this.#index.get(tags.folderNumbers)
    let i = 0
    for (const name of numbers ? this.#strings(tags.names) : this.#strings(tags.oldFiles)) {
      const isThere = numbers?.type === types.int32 && i < numbers.count
      const folder = isThere
        ? (folders[this.#blob.readUInt32BE(this.#positionOf(numbers, 4 * (i + 1)) + 4 * i)] ?? '')
        : ''
      i++
      if (budget.left-- <= 0) return
      yield `${folder}${name}`.replace(/^\/{1,8}/, '')
    }
  }

  *#strings(tag: number): Generator<string> {
    const entry = this.#index.get(tag)
    if (entry?.type !== types.strings) return
    let at = this.#positionOf(entry, 1)
    for (let i = 0; i < entry.count && at < this.#end; i++) {
      const { text, end } = this.#stringAt(at)
      yield text
      at = end + 1
    }
  }

  #positionOf({ offset }: IndexEntry, length: number): number {
    const at = this.#data + offset
    if (offset < 0 || at + length > this.#end) throw damaged()
    return at
  }

  #stringAt(at: number): { text: string; end: number } {
    const end = this.#blob.indexOf(0, at)
    if (end < 0 || end >= this.#end || end - at > maxString) throw damaged()
    return { text: this.#blob.toString('utf8', at, end), end }
  }
}

const damaged = () => new Unreadable('DAMAGED', 'an rpm package header is damaged')
