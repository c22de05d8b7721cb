import { hash } from 'node:crypto'

/** Digest algorithms of content (image specification, "Digests"). */
export type Algorithm = 'sha256' | 'sha512'

export const digestPattern = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/
export const sha256Pattern = /^sha256:[0-9a-f]{64}$/

export function isDigest(text: string): boolean {
  return digestPattern.test(text)
}

export function algorithmOf(digest: string): Algorithm {
  return digest.startsWith('sha512:') ? 'sha512' : 'sha256'
}

export function digestOf(algorithm: Algorithm, bytes: Uint8Array): string {
  return `${algorithm}:${hash(algorithm, bytes, 'hex')}`
}
