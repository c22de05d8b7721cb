// ID tokens of this server. A program reads from them who has signed in. On this server, only the token exchange accepts them.
import { randomUUID } from 'node:crypto'
import { type JWTPayload, jwtVerify, SignJWT } from 'jose'
import type { App } from '#app.ts'
import { findLiveSession } from '#domains/iam/sessions/sessions.service.ts'
import type { Session } from '#domains/iam/sign-in/sign-in.service.ts'
import { signingAlgorithms } from '#lib/crypto/signing-algorithms.ts'
import type { Issuing } from './exchange.ts'
import { refused } from './outside-token.ts'

/** Lifetime of an ID token, in seconds. The token is also invalid once its session ends. */
const lifetimeSeconds = 20 * 60
/** Value of the claim `token_use`. It distinguishes ID tokens from cloud assertions, which also have the type `JWT`. */
const use = 'id'

type IdTokenClaims = { clientId: string; nonce: string }

/** Signs an ID token. Its audience is a client ID. No entry point accepts it as an access token. */
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
    // If an organization's provider has verified the address, it is unverified outside of that organization.
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

/** Session of an ID token of this server. Throws UNAUTHENTICATED if the token is invalid or its session has ended. */
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
