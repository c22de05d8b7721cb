import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Keyring } from './keyring.ts'

const lifetimeSeconds = 5 * 60

/**
 * Signs a token that a cloud is to accept from us. It is no access token: its type is another, so that none of our doors
 * takes it, and whoever verifies ours by the audience does not either. All clouds take RS256, and Azure nothing else for sure.
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
