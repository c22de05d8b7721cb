// Keys of the Standard Webhooks signature, one for each subscription. Each is shown once, to the owner of the subscription.
import { randomBytes } from 'node:crypto'
import type { Sealer } from '#lib/crypto/seal.ts'
import { secretText as textOf } from '#lib/crypto/standard-webhooks.ts'

const purpose = 'subscription-secret'
const secretBytes = 32

/** New secret, sealed for its row. */
export function newSecret(sealer: Sealer): Uint8Array {
  return sealer.seal(purpose, randomBytes(secretBytes))
}

/** Unseals a secret. Throws if it was sealed with another master key. */
export function unsealSecret(sealer: Sealer, sealed: Uint8Array): Buffer {
  const plain = sealer.unseal(purpose, sealed)
  if (!plain) throw new Error('the secret of a subscription is encrypted with another master key')
  return plain
}

/** Text of a secret for subscribers. */
export function secretText(sealer: Sealer, sealed: Uint8Array): string {
  return textOf(unsealSecret(sealer, sealed))
}
