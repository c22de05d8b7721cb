// Headless sign-in: a person approves a program that runs on a machine without a browser, and the program fetches its token.
import type { Call, Work } from '#app.ts'
import { leaveForHeadless, readHeadlessCode, takeForHeadless } from '#domains/iam/sessions/headless.service.ts'
import type { Session } from '#domains/iam/sign-in/sign-in.service.ts'
import { AppError } from '#lib/errors.ts'
import { ownClient } from '../clients.ts'
import type { Issuing } from '../exchange.ts'
import { signIdToken } from '../id-token.ts'

export { readHeadlessCode }

/**
 * Stores an encrypted ID token, which only the program with this key can decrypt. The program exchanges it for an access token.
 */
export async function storeHeadlessToken(
  work: Pick<Work, 'app' | 'cause' | 'log'>,
  issuing: Issuing,
  session: Session,
  code: string,
): Promise<void> {
  const { limits } = work.app
  limits.check('source', issuing.source)
  limits.check('guess', session.identityUid)
  const sign = (of: Session) => signIdToken(issuing, of, { clientId: ownClient, nonce: '' })
  const begun = await leaveForHeadless(work, session, code, sign)
  work.log.info('headless sign-in approved', { session: begun.uid })
}

/** Encrypted ID token for the program. Throws NOT_FOUND before the program is approved and after the token was fetched once. */
export async function fetchForProgram(
  { app, cause }: Pick<Call, 'app' | 'cause'>,
  text: string,
): Promise<{ publicKey: string; encrypted: Uint8Array }> {
  app.limits.check('source', cause.source)
  const found = await takeForHeadless(app, readHeadlessCode(text, 'code'))
  if (!found) throw notApproved()
  return found
}

function notApproved(): AppError {
  return new AppError('NOT_FOUND', 'the sign-in was not approved yet, or its token was already fetched')
}
