import { createPublicKey } from 'node:crypto'

/** Public key that can verify signatures, in the canonical form of RFC 7517, without other members. */
export type PublicJwk = {
  kty: string
  use: 'sig'
  kid?: string
  alg?: string
  n?: string
  e?: string
  crv?: string
  x?: string
  y?: string
}
export type KeySet = { keys: PublicJwk[] }

/** Maximum number of keys that are read from a set. */
export const maxKeys = 100

const maxKidLength = 512
const rsa = { members: ['n', 'e'], algorithms: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] }
const kinds = new Map([
  ['RSA', rsa],
  ['EC P-256', { members: ['crv', 'x', 'y'], algorithms: ['ES256'] }],
  ['EC P-384', { members: ['crv', 'x', 'y'], algorithms: ['ES384'] }],
  ['EC P-521', { members: ['crv', 'x', 'y'], algorithms: ['ES512'] }],
  ['OKP Ed25519', { members: ['crv', 'x'], algorithms: ['EdDSA', 'Ed25519'] }],
])

/** Keys of a JWK Set that can verify signatures. Other keys are left out. `undefined` if the value is not a JWK Set. */
export function readKeySet(document: unknown): KeySet | undefined {
  if (!isObject(document) || !Array.isArray(document.keys)) return undefined
  return { keys: document.keys.slice(0, maxKeys).flatMap((key) => readKey(key) ?? []) }
}

/** Like `readKeySet`, for JSON text. Empty if the text is not a JWK Set. */
export function readKeySetText(text: string): KeySet {
  try {
    return readKeySet(JSON.parse(text)) ?? { keys: [] }
  } catch {
    return { keys: [] }
  }
}

function readKey(jwk: unknown): PublicJwk | undefined {
  if (!isObject(jwk) || typeof jwk.kty !== 'string') return undefined
  const kind = kinds.get(jwk.kty === 'RSA' ? 'RSA' : `${jwk.kty} ${jwk.crv}`)
  if (!kind || !isForSignatures(jwk, kind.algorithms)) return undefined
  // A key with its private part is not trusted, since anyone could sign with it.
  if ('d' in jwk || 'k' in jwk) return undefined
  const { kid, alg } = jwk
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > maxKidLength)) return undefined
  const material = readMaterial(jwk, kind.members)
  if (!material) return undefined
  return {
    ...material,
    use: 'sig',
    ...(kid !== undefined && { kid }),
    ...(alg !== undefined && { alg: alg as string }),
  }
}

function isForSignatures({ use, key_ops, alg }: Record<string, unknown>, algorithms: string[]): boolean {
  if (use !== undefined && use !== 'sig') return false
  if (key_ops !== undefined && !(Array.isArray(key_ops) && key_ops.includes('verify'))) return false
  return alg === undefined || (typeof alg === 'string' && algorithms.includes(alg))
}

/** Modulus and exponent of an RSA key. Their maximum sizes limit the cost of one signature check. */
function readMaterial(jwk: Record<string, unknown>, members: string[]): Omit<PublicJwk, 'use'> | undefined {
  const given: Record<string, string> = { kty: jwk.kty as string }
  for (const member of members) {
    const value = jwk[member]
    // Maximum sizes: 8,192 bits and a leading zero byte for the modulus, and 32 bits for the exponent.
    const longest = member === 'e' ? 6 : 1368
    if (typeof value !== 'string' || value.length > longest) return undefined
    if (member !== 'crv' && !/^[A-Za-z0-9_-]+$/.test(value)) return undefined
    given[member] = value
  }
  try {
    const key = createPublicKey({ key: given, format: 'jwk' })
    const { modulusLength, publicExponent } = key.asymmetricKeyDetails ?? {}
    if (given.kty === 'RSA') {
      if (modulusLength === undefined || modulusLength < 2048 || modulusLength > 8192) return undefined
      if (publicExponent === undefined || publicExponent < 3n || publicExponent % 2n === 0n) return undefined
    }
    return key.export({ format: 'jwk' }) as Omit<PublicJwk, 'use'>
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
