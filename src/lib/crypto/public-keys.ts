// Public keys of external signers, as users enter them.
import { createHash, createPublicKey, type KeyObject } from 'node:crypto'

/** `pem` is the canonical PEM form of the key. `fingerprint` is the SHA-256 of its DER form, as hex. */
export type PublicKey = { pem: string; fingerprint: string }

const maxPem = 16_384

/**
 * Parses a key. Returns an error message if the text is not a public key. Refuses a private key, although it contains the public
 * one.
 */
export function publicKeyOf(text: string): PublicKey | string {
  if (text === '') return 'is required'
  if (text.length > maxPem) return `must be at most ${maxPem} characters long`
  if (/PRIVATE KEY/.test(text)) return 'is a private key; send the public key instead, and keep the private key secret'
  if (!/^\s*-----BEGIN (?:RSA )?PUBLIC KEY-----[A-Za-z0-9+/=\s]+-----END (?:RSA )?PUBLIC KEY-----\s*$/.test(text)) {
    return 'must be one public key in PEM format'
  }
  let key: KeyObject
  try {
    key = createPublicKey(text)
  } catch {
    return 'is not a public key'
  }
  const problem = problemOf(key)
  if (problem) return problem
  const der = key.export({ type: 'spki', format: 'der' })
  const fingerprint = createHash('sha256').update(der).digest('hex')
  return { pem: key.export({ type: 'spki', format: 'pem' }).toString(), fingerprint }
}

function problemOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): string | undefined {
  if (type === 'ed25519') return undefined
  if (type === 'ec' && details?.namedCurve === 'prime256v1') return undefined
  if (type === 'rsa') {
    const bits = details?.modulusLength ?? 0
    const exponent = details?.publicExponent ?? 0n
    if (bits < 2048 || bits > 8192) return 'is an RSA key with fewer than 2048 or more than 8192 bits'
    return exponent < 3n || exponent > 2n ** 32n ? 'is an RSA key with an unsupported public exponent' : undefined
  }
  return 'must be an ECDSA P-256, Ed25519 or RSA key'
}
