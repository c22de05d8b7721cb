// Blobs of packages in the ndb format of rpm, `Packages.db`: slots that point to blobs, all in little-endian byte order.
import { Unreadable } from '../../packages.ts'

export const ndbMagic = Buffer.from('RpmP')
const slotMagic = 0x746f6c53
const blobMagic = 0x53626c42
const headerBytes = 32
const slotBytes = 16
const slotPageBytes = 4096
const blockBytes = 16

/** One for each package; undefined for a blob of more bytes or one that is not whole. */
export function* blobsInNdb(bytes: Buffer, mostBytes: number): Generator<Buffer | undefined> {
  if (bytes.length < slotPageBytes || bytes.readUInt32LE(4) !== 0) throw damaged()
  const slotsEnd = bytes.readUInt32LE(12) * slotPageBytes
  if (slotsEnd < slotPageBytes || slotsEnd > bytes.length) throw damaged()
  // Without it each slot could lead to the same large blob.
  const seen = new Set<number>()
  let total = 0
  for (let at = headerBytes; at + slotBytes <= slotsEnd; at += slotBytes) {
    if (bytes.readUInt32LE(at) !== slotMagic) throw damaged()
    const [index, start] = [bytes.readUInt32LE(at + 4), bytes.readUInt32LE(at + 8) * blockBytes]
    if (index === 0) continue
    const blob = seen.has(index) ? undefined : blobAt(bytes, index, start, mostBytes)
    seen.add(index)
    total += blob?.length ?? 0
    // Only blobs that share bytes can be larger together than the file.
    if (total > bytes.length) throw damaged()
    yield blob
  }
}

function blobAt(bytes: Buffer, index: number, start: number, mostBytes: number): Buffer | undefined {
  const content = start + blockBytes
  if (content > bytes.length) return undefined
  if (bytes.readUInt32LE(start) !== blobMagic || bytes.readUInt32LE(start + 4) !== index) return undefined
  const length = bytes.readUInt32LE(start + 12)
  return length > mostBytes || content + length > bytes.length ? undefined : bytes.subarray(content, content + length)
}

const damaged = () => new Unreadable('DAMAGED', 'the ndb database is damaged')
