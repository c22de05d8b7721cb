// ID tokens of ours: they say who has signed in for a program, and are good for the exchange and nothing else.
import { randomUUID } from 'node:crypto'
import { type JWTPayload, jwtVerify, SignJWT } from 'jose'
import type { App } from '#app.ts'
import { findLiveSession } from '#domains/iam/sessions/sessions.service.ts'
import type { Session } from '#domains/iam/sign-in/sign-in.service.ts'
import { signingAlgorithms } from '#lib/crypto/signing-algorithms.ts'
import type { Issuing } from './exchange.ts'
import { refused } from './outside-token.ts'

/** How long one is good; the session has to go on as well. */
const lifetimeSeconds = 20 * 60
/** Tells them from what clouds are shown, which has the same type. */
const use = 'id'

type Says = { clientId: string; nonce: string }

/** Its audience is a program, and none of our doors takes one. */
export async function signIdToken({ app, issuer }: Issuing, session: Session, says: Says): Promise<string> {
  const { kid, alg, key } = app.keyring.signer()
  const issuedAt = Math.floor(app.clock().getTime() / 1000)
  const { uid, identityUid, organization, authTime, profile } = session
  const { email, emailVerified, name } = profile
  return new SignJWT({
    sid: uid,
    token_use: use,
    ...(authTime > 0 && { auth_time: authTime }),
    ...(says.nonce !== '' && { nonce: says.nonce }),
    // What only an organisation's provider says is nothing that we have verified.
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

/** The session that an ID token of ours is about. Throws UNAUTHENTICATED for one that is not good, or whose session has ended. */
export async function sessionOfIdToken({ app, issuer }: Issuing, text: string): Promise<Session> {
  const says = await read(app, issuer, text)
  const session = typeof says.sid === 'string' ? await findLiveSession(app, says.sid) : undefined
  if (!session || session.identityUid !== says.sub) throw refused('the session of our ID token')
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
    if (payload.token_use !== use) throw new Error('its use')
    return payload
  } catch {
    throw refused('our own token')
  }
}
