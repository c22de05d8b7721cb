import { hash } from 'node:crypto'

/** SHA-256 hash of a secret of 256 random bits, to be stored in place of the secret. */
export function hashOf(secret: string): string {
  return hash('sha256', secret, 'base64url')
}
