import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import type { Purpose } from './encrypted-columns.ts'
import { fingerprintOf } from './master-key.ts'

/** Authenticated encryption with keys that are derived from the master key, one for each purpose. */
export type SecretCipher = {
  /** Fingerprint of the master key. */
  readonly fingerprint: string
  encrypt(purpose: Purpose, plain: Uint8Array): Buffer
  /** Decrypts. Returns `undefined` if the bytes were not encrypted with this key for this purpose. */
  decrypt(purpose: Purpose, sealed: Uint8Array): Buffer | undefined
}

const nonceLength = 12
const tagLength = 16

/** Creates the encryption, AES-256-GCM. An encrypted value has nonce, ciphertext and tag. */
export function createSecretCipher(masterKey: Uint8Array): SecretCipher {
  const keys = new Map<string, KeyObject>()
  const keyOf = (purpose: string): KeyObject => {
    let key = keys.get(purpose)
    if (!key) {
      key = createSecretKey(Buffer.from(hkdfSync('sha256', masterKey, 'pinfold', purpose, 32)))
      keys.set(purpose, key)
    }
    return key
  }

  return {
    fingerprint: fingerprintOf(masterKey),
    encrypt(purpose, plain) {
      const nonce = randomBytes(nonceLength)
      const aes = createCipheriv('aes-256-gcm', keyOf(purpose), nonce)
      return Buffer.concat([nonce, aes.update(plain), aes.final(), aes.getAuthTag()])
    },
    decrypt(purpose, sealed) {
      if (sealed.length < nonceLength + tagLength) return undefined
      const decipher = createDecipheriv('aes-256-gcm', keyOf(purpose), sealed.subarray(0, nonceLength))
      decipher.setAuthTag(sealed.subarray(sealed.length - tagLength))
      const head = decipher.update(sealed.subarray(nonceLength, sealed.length - tagLength))
      try {
        return Buffer.concat([head, decipher.final()])
      } catch {
        return undefined
      }
    },
  }
}
