import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Keyring } from './keyring.ts'

const lifetimeSeconds = 5 * 60

/**
 * Signs a token for a cloud that trusts this issuer. Its type differs from that of access tokens, so none of our entry points
 * accepts it, nor do services that verify our tokens by audience. All clouds accept RS256, and Azure may accept nothing else.
 */
export async function signCloudAssertion(
  keyring: Keyring,
  says: { issuer: string; subject: string; audience: string; now: Date },
): Promise<string> {
  const { kid, alg, key } = keyring.signer('RS256')
  const issuedAt = Math.floor(says.now.getTime() / 1000)
  return new SignJWT()
    .setProtectedHeader({ alg, kid, typ: 'JWT' })
    .setIssuer(says.issuer)
    .setSubject(says.subject)
    .setAudience(says.audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + lifetimeSeconds)
    .setJti(randomUUID())
    .sign(key)
}
