import { createHash } from 'node:crypto'

/** One large issuer still writes its name without a scheme in some tokens; both spellings are the same issuer. */
export function canonicalIssuer(issuer: string): string {
  return issuer === 'accounts.google.com' ? `https://${issuer}` : issuer
}

/**
 * The uid that a person has, known before they ever sign up, so that they can be bound first: the first 20 bytes of
 * SHA-256 over the issuer, NUL and the subject, in hex.
 */
export function personUid(issuer: string, subject: string): string {
  return createHash('sha256')
    .update(`${canonicalIssuer(issuer)}\0${subject}`)
    .digest('hex')
    .slice(0, 40)
}
