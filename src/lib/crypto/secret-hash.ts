import { hash } from 'node:crypto'

/** What is to be stored of a secret of 256 random bits that somebody else keeps. */
export function hashOf(secret: string): string {
  return hash('sha256', secret, 'base64url')
}
