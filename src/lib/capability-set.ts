// Encoding of a set of capabilities in the `cap` claim of an access token, as bits.

const initialLength = 50
const wordBits = 64n

/**
 * Encodes bits as base64url with padding. The bytes are the number of bits (8 bytes), and then the bits in 64-bit words,
 * the lowest word first. Each number is big endian.
 */
export function encodeBits(mask: bigint): string {
  const length = Math.max(initialLength, mask.toString(2).length)
  const words = Math.ceil(length / 64)
  const bytes = Buffer.alloc(8 + words * 8)
  bytes.writeBigUInt64BE(BigInt(length), 0)
  for (let i = 0; i < words; i++) {
    bytes.writeBigUInt64BE(BigInt.asUintN(64, mask >> (wordBits * BigInt(i))), 8 + i * 8)
  }
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_')
}

/** Decodes bits. Returns `undefined` for text that `encodeBits` cannot have written. */
export function decodeBits(text: string): bigint | undefined {
  if (!/^[A-Za-z0-9_-]*={0,2}$/.test(text) || text.length % 4 !== 0) return undefined
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length < 8) return undefined
  const length = bytes.readBigUInt64BE(0)
  const words = Math.ceil(Number(length) / 64)
  if (length > 4096n || bytes.length !== 8 + words * 8) return undefined
  let mask = 0n
  for (let i = 0; i < words; i++) mask |= bytes.readBigUInt64BE(8 + i * 8) << (wordBits * BigInt(i))
  return mask >> length === 0n ? mask : undefined
}
