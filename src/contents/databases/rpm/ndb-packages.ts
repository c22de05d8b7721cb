// Reader of `Packages.db`, the ndb format of rpm. The file has slots that point to blobs. All numbers are little-endian.
import { Unreadable } from '../../packages.ts'

export const ndbMagic = Buffer.from('RpmP')
const slotMagic = 0x746f6c53
const blobMagic = 0x53626c42
const headerBytes = 32
const slotBytes = 16
const slotPageBytes = 4096
const blockBytes = 16

/** Yields the blob of each package. Yields undefined for a blob that is larger than `mostBytes` or incomplete. */
export function* blobsInNdb(bytes: Buffer, mostBytes: number): Generator<Buffer | undefined> {
  if (bytes.length < slotPageBytes || bytes.readUInt32LE(4) !== 0) throw damaged()
  const slotsEnd = bytes.readUInt32LE(12) * slotPageBytes
  if (slotsEnd < slotPageBytes || slotsEnd > bytes.length) throw damaged()
  // Offsets that were read. Without this check, many slots could point to the same large blob.
  const seen = new Set<number>()
  let total = 0
  for (let at = headerBytes; at + slotBytes <= slotsEnd; at += slotBytes) {
    if (bytes.readUInt32LE(at) !== slotMagic) throw damaged()
    const [index, start] = [bytes.readUInt32LE(at + 4), bytes.readUInt32LE(at + 8) * blockBytes]
    if (index === 0) continue
    const blob = seen.has(index) ? undefined : blobAt(bytes, index, start, mostBytes)
    seen.add(index)
    total += blob?.length ?? 0
    // If the blobs together are larger than the file, some of them overlap.
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
