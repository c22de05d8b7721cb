// ID tokens of this server. They tell a program who has signed in, and are accepted only by the exchange.
import { randomUUID } from 'node:crypto'
import { type JWTPayload, jwtVerify, SignJWT } from 'jose'
import type { App } from '#app.ts'
import { findLiveSession } from '#domains/iam/sessions/sessions.service.ts'
import type { Session } from '#domains/iam/sign-in/sign-in.service.ts'
import { signingAlgorithms } from '#lib/crypto/signing-algorithms.ts'
import type { Issuing } from './exchange.ts'
import { refused } from './outside-token.ts'

/** Life of an ID token, in seconds. Its session must be active as well. */
const lifetimeSeconds = 20 * 60
/** Distinguishes ID tokens from cloud assertions, which have the same type. */
const use = 'id'

type IdTokenClaims = { clientId: string; nonce: string }

/** Signs an ID token. Its audience is a program, and no entry point of ours accepts it as an access token. */
export async function signIdToken({ app, issuer }: Issuing, session: Session, says: IdTokenClaims): Promise<string> {
  const { kid, alg, key } = app.keyring.signer()
  const issuedAt = Math.floor(app.clock().getTime() / 1000)
  const { uid, identityUid, organization, authTime, profile } = session
  const { email, emailVerified, name } = profile
  return new SignJWT({
    sid: uid,
    token_use: use,
    ...(authTime > 0 && { auth_time: authTime }),
    ...(says.nonce !== '' && { nonce: says.nonce }),
    // An address that only an organization's provider has verified does not count as verified here.
    ...(email !== '' && { email, email_verified: emailVerified && organization === '' }),
    ...(organization !== '' && { org: organization }),
    ...(name !== '' && { name }),
  })
    .setProtectedHeader({ alg, kid, typ: 'JWT' })
    .setIssuer(issuer)
    .setSubject(identityUid)
    .setAudience(says.clientId)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + lifetimeSeconds)
    .setJti(randomUUID())
    .sign(key)
}

/** Session of our own ID token. Throws UNAUTHENTICATED if the token is not valid or its session has ended. */
export async function sessionOfIdToken({ app, issuer }: Issuing, text: string): Promise<Session> {
  const says = await read(app, issuer, text)
  const session = typeof says.sid === 'string' ? await findLiveSession(app, says.sid) : undefined
  if (!session || session.identityUid !== says.sub) throw refused('the session of the ID token has ended')
  return session
}

async function read({ keyring, clock }: App, issuer: string, text: string): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(text, async ({ kid, alg }) => (await keyring.findVerifier(kid ?? '', alg))!, {
      issuer,
      typ: 'JWT',
      algorithms: [...signingAlgorithms],
      currentDate: clock(),
      requiredClaims: ['sub', 'iat', 'exp', 'sid'],
    })
    if (payload.token_use !== use) throw new Error('not an ID token')
    return payload
  } catch {
    throw refused('an invalid ID token of this server')
  }
}
