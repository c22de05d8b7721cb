// The keys of the Standard Webhooks signature, one for each subscription, which only its owner gets to see, and once.
import { randomBytes } from 'node:crypto'
import type { Sealer } from '#lib/crypto/seal.ts'
import { secretText as textOf } from '#lib/crypto/standard-webhooks.ts'

const purpose = 'subscription-secret'
const secretBytes = 32

/** A new secret, ready for its row. */
export function newSecret(sealer: Sealer): Uint8Array {
  return sealer.seal(purpose, randomBytes(secretBytes))
}

/** Throws for one that was sealed under another master key. */
export function unsealSecret(sealer: Sealer, sealed: Uint8Array): Buffer {
  const plain = sealer.unseal(purpose, sealed)
  if (!plain) throw new Error('a secret was sealed under another master key')
  return plain
}

/** As subscribers get it. */
export function secretText(sealer: Sealer, sealed: Uint8Array): string {
  return textOf(unsealSecret(sealer, sealed))
}
