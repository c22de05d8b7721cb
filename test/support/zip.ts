import { crc32, deflateRawSync } from 'node:zlib'

/** Zip archive. The declared size of an entry may differ from its real size. */
export function zipOf(entries: Record<string, string | Uint8Array>, claims: Record<string, number> = {}): Buffer {
  const [parts, directory]: [Buffer[], Buffer[]] = [[], []]
  let offset = 0
  for (const [name, given] of Object.entries(entries)) {
    const content = Buffer.from(given)
    const packed = deflateRawSync(content)
    const fields = fieldsOf(content, packed, name, claims[name])
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), fields, Buffer.from(name), packed])
    const location = Buffer.alloc(14)
    location.writeUInt32LE(offset, 10)
    const made = Buffer.from([20, 0])
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02', 'latin1'), made, fields, location, Buffer.from(name)]))
    parts.push(local)
    offset += local.length
  }
  const central = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 0, 'latin1')
  end.writeUInt16LE(directory.length, 8)
  end.writeUInt16LE(directory.length, 10)
  end.writeUInt32LE(central.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, central, end])
}

/** Fields of an entry that are in front of its content and in the directory. */
export function fieldsOf(content: Buffer, packed: Buffer, name: string, claimed = content.length): Buffer {
  const fields = Buffer.alloc(26)
  fields.writeUInt16LE(20, 0)
  fields.writeUInt16LE(0x800, 2)
  fields.writeUInt16LE(8, 4)
  fields.writeUInt32LE(crc32(content), 10)
  fields.writeUInt32LE(packed.length, 14)
  fields.writeUInt32LE(claimed, 18)
  fields.writeUInt16LE(Buffer.byteLength(name), 22)
  return fields
}
