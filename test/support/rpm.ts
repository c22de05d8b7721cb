// RPM databases in all formats, composed for tests.

export type RpmPackage = {
  name: string
  version: string
  release: string
  epoch?: number
  arch?: string
  source?: string
  module?: string
  files?: readonly string[]
}

/** RPM header of a package: an index of tags, then the data, in network byte order. */
export function rpmHeader(one: RpmPackage): Buffer {
  const strings: [tag: number, text: string | undefined][] = [
    [1000, one.name],
    [1001, one.version],
    [1002, one.release],
    [1022, one.arch ?? 'x86_64'],
    [1044, one.source],
    [5096, one.module],
  ]
  const files = one.files ?? []
  const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/') + 1)
  const entries: [tag: number, type: number, count: number, data: Buffer][] = [
    ...strings.flatMap(([tag, text]): [number, number, number, Buffer][] => {
      return text === undefined ? [] : [[tag, 6, 1, Buffer.from(`${text}\0`)]]
    }),
    ...(one.epoch === undefined ? [] : [[1003, 4, 1, numbers([one.epoch])] as [number, number, number, Buffer]]),
    [1116, 4, files.length, numbers(files.map((_, i) => i))],
    [1117, 8, files.length, Buffer.from(files.map((path) => `${path.slice(folderOf(path).length)}\0`).join(''))],
    [1118, 8, files.length, Buffer.from(files.map((path) => `${folderOf(path)}\0`).join(''))],
  ]
  const index: Buffer[] = []
  let data = Buffer.alloc(0)
  for (const [tag, type, count, bytes] of entries) {
    if (count === 0) continue
    // Numbers in the data are aligned.
    data = Buffer.concat([data, Buffer.alloc((4 - (data.length % 4)) % 4)])
    index.push(numbers([tag, type, data.length, count]))
    data = Buffer.concat([data, bytes])
  }
  return Buffer.concat([numbers([index.length, data.length]), ...index, data])
}

function numbers(values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, 4 * i)
  return bytes
}

const block = 16

/** `Packages.db`: a page of slots whose second slot is the header, then blobs in blocks. */
export function ndbDatabase(blobs: readonly Buffer[]): Buffer {
  const slots = Buffer.alloc(4096)
  const write = (into: Buffer, at: number, values: readonly number[]): void => {
    for (const [i, value] of values.entries()) into.writeUInt32LE(value, at + 4 * i)
  }
  write(slots, 0, [0x506d7052, 0, 1, 1, blobs.length + 1])
  for (let at = 32; at < slots.length; at += block) slots.write('Slot', at)
  const parts: Buffer[] = [slots]
  let at = slots.length
  blobs.forEach((blob, i) => {
    const size = Math.ceil((block + blob.length + 12) / block) * block
    const stored = Buffer.alloc(size)
    stored.write('BlbS')
    write(stored, 4, [i + 1, 1, blob.length])
    blob.copy(stored, block)
    // One slot between the others is free.
    write(slots, 32 + block * (2 * i) + 4, [i + 1, at / block, size / block])
    parts.push(stored)
    at += size
  })
  return Buffer.concat(parts)
}

const page = 512

/**
 * `Packages` file in the format `Berkeley DB`: a page of metadata, pages of a key and a value each, and overflow pages for large
 * values.
 */
export function berkeleyDatabase(blobs: readonly Buffer[], isLittle = true): Buffer {
  const pages: Buffer[] = [Buffer.alloc(page)]
  const u32 = (bytes: Buffer, value: number, at: number) =>
    isLittle ? bytes.writeUInt32LE(value, at) : bytes.writeUInt32BE(value, at)
  const u16 = (bytes: Buffer, value: number, at: number) =>
    isLittle ? bytes.writeUInt16LE(value, at) : bytes.writeUInt16BE(value, at)
  const add = (type: number): Buffer => {
    const bytes = Buffer.alloc(page)
    u32(bytes, pages.length, 8)
    bytes[25] = type
    pages.push(bytes)
    return bytes
  }
  const addPair = (key: number, value: Buffer): void => {
    const bytes = add(13)
    const name = Buffer.alloc(5)
    name[0] = 1
    u32(name, key, 1)
    u16(bytes, 2, 20)
    name.copy(bytes, page - name.length)
    value.copy(bytes, page - name.length - value.length)
    u16(bytes, page - name.length, 26)
    u16(bytes, page - name.length - value.length, 28)
  }
  const count = Buffer.alloc(5)
  count[0] = 1
  addPair(0, count)
  blobs.forEach((blob, i) => {
    const first = pages.length + 1
    const value = Buffer.alloc(12)
    value[0] = 3
    u32(value, first, 4)
    u32(value, blob.length, 8)
    addPair(i + 1, value)
    for (let at = 0; at < blob.length; at += page - 26) {
      const bytes = add(7)
      const used = Math.min(page - 26, blob.length - at)
      u16(bytes, used, 22)
      u32(bytes, at + used < blob.length ? pages.length : 0, 16)
      blob.copy(bytes, 26, at, at + used)
    }
  })
  const meta = pages[0]!
  u32(meta, 0x061561, 12)
  u32(meta, page, 20)
  meta[25] = 8
  u32(meta, pages.length - 1, 32)
  u32(meta, blobs.length + 1, 88)
  return Buffer.concat(pages)
}
