import { createHash } from 'node:crypto'

/** Canonical form of an issuer. One large issuer omits the scheme in some tokens; both spellings are the same issuer. */
export function canonicalIssuer(issuer: string): string {
  return issuer === 'accounts.google.com' ? `https://${issuer}` : issuer
}

/**
 * Uid of a person: the first 20 bytes of SHA-256 over the issuer, a zero byte and the subject, in hex. It is known before the
 * first sign-in, so that people can have bindings by then.
 */
export function personUid(issuer: string, subject: string): string {
  return createHash('sha256')
    .update(`${canonicalIssuer(issuer)}\0${subject}`)
    .digest('hex')
    .slice(0, 40)
}
