import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Keyring } from './keyring.ts'

const lifetimeSeconds = 5 * 60

/**
 * Signs a token for a cloud that trusts this issuer. Its `typ` differs from that of access tokens. So neither our entry points
 * accept it, nor services that verify our tokens by audience. The algorithm is RS256, which all clouds accept; Azure may accept
 * nothing else.
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
