// Authorization codes for programs with a loopback redirect (RFC 6749, 4.1, with PKCE, RFC 7636).
import { hash, timingSafeEqual } from 'node:crypto'
import type { App, Work } from '#app.ts'
import { hashOf } from '#lib/crypto/secret-hash.ts'
import * as store from './own-grants.store.ts'
import { type Session, signInCodeSeconds } from './sessions.model.ts'
import { after, end, findLiveSession, newSecret } from './sessions.service.ts'

export type SignInCodeOf = { clientId: string; redirect: string; challenge: string; nonce: string; asked: object }

/** Creates an authorization code for a session. The code is valid for one minute and for one use. */
export async function issueSignInCode(app: App, session: Session, of: SignInCodeOf): Promise<string> {
  const code = newSecret()
  await app.db.tx((tx) =>
    store.insertSignInCode(tx, {
      ...of,
      asked: JSON.stringify(of.asked),
      codeHash: hashOf(code),
      sessionUid: session.uid,
      expireTime: after(app.clock().toISOString(), signInCodeSeconds),
    }),
  )
  return code
}

export type Shown = { code: string; clientId: string; redirect: string; verifier: string }
export type Redeemed = { session: Session; asked: unknown; nonce: string }

/**
 * Exchanges an authorization code for its session. Undefined if the code is invalid. If the code was used before, the session
 * ends.
 */
export async function redeemSignInCode(
  work: Pick<Work, 'app' | 'cause' | 'log'>,
  { code, clientId, redirect, verifier }: Shown,
): Promise<Redeemed | undefined> {
  const { app, cause } = work
  const codeHash = hashOf(code)
  const found = await store.findSignInCode(app.db, codeHash)
  const session = found && (await findLiveSession(app, found.sessionUid))
  if (!found || !session) return undefined
  const isTheirs =
    found.clientId === clientId && found.redirect === redirect && isChallengeOf(found.challenge, verifier)
  if (!isTheirs || (found.expireTime <= cause.now && found.used === 0)) return undefined
  const isFirst = await app.db.tx(async (tx) => {
    if (await store.useSignInCode(tx, codeHash)) return true
    await end(tx, work, session, 'reused')
    return false
  })
  if (!isFirst) {
    work.log.warn('sign-in code used again', { session: session.uid })
    return undefined
  }
  return { session, asked: JSON.parse(found.asked), nonce: found.nonce }
}

function isChallengeOf(challenge: string, verifier: string): boolean {
  const [wanted, shown] = [Buffer.from(challenge), Buffer.from(hash('sha256', verifier, 'base64url'))]
  return wanted.length === shown.length && timingSafeEqual(wanted, shown)
}
