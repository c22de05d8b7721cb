// Keys of the Standard Webhooks signatures. Each subscription has a separate key. A response shows a key only once, to the owner
// of the subscription.
import { randomBytes } from 'node:crypto'
import type { SecretCipher } from '#lib/crypto/secret-cipher.ts'
import { secretText as textOf } from '#lib/crypto/standard-webhooks.ts'

const purpose = 'subscription-secret'
const secretBytes = 32

/** Creates a secret and encrypts it for the database. */
export function newSecret(cipher: SecretCipher): Uint8Array {
  return cipher.encrypt(purpose, randomBytes(secretBytes))
}

/** Decrypts a secret. Throws if the secret was encrypted with another master key. */
export function decryptSecret(cipher: SecretCipher, sealed: Uint8Array): Buffer {
  const plain = cipher.decrypt(purpose, sealed)
  if (!plain) throw new Error('the secret of a subscription is encrypted with another master key')
  return plain
}

/** Text of a secret for subscribers. */
export function secretText(cipher: SecretCipher, sealed: Uint8Array): string {
  return textOf(decryptSecret(cipher, sealed))
}
