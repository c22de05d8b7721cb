import { createHash } from 'node:crypto'

/**
 * Issuer in its canonical form. In some tokens of one large issuer, the scheme of the URL is missing. Both spellings are the same
 * issuer.
 */
export function canonicalIssuer(issuer: string): string {
  return issuer === 'accounts.google.com' ? `https://${issuer}` : issuer
}

/**
 * Uid of a person: the first 20 bytes of SHA-256 over the issuer, a zero byte and the subject, in hex. The uid is known before
 * the first sign-in, so people can get bindings earlier.
 */
export function personUid(issuer: string, subject: string): string {
  return createHash('sha256')
    .update(`${canonicalIssuer(issuer)}\0${subject}`)
    .digest('hex')
    .slice(0, 40)
}
