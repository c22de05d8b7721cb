// The sign-in of a program on a machine without a browser: what a page lets in, and what the program fetches.
import type { Call, Work } from '#app.ts'
import { leaveForHeadless, readHeadlessCode, takeForHeadless } from '#domains/iam/sessions/headless.service.ts'
import type { Session } from '#domains/iam/sign-in/sign-in.service.ts'
import { AppError } from '#lib/errors.ts'
import { ownClient } from '../clients.ts'
import type { Issuing } from '../exchange.ts'
import { signIdToken } from '../id-token.ts'

export { readHeadlessCode }

/** Leaves an ID token of ours, which the exchange takes, for the program with this key. */
export async function letProgramIn(
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
  work.log.info('program signed in without a browser', { session: begun.uid })
}

/** What waits for the program, once. NOT_FOUND until somebody has let it in, and again afterwards. */
export async function fetchForProgram(
  { app, cause }: Pick<Call, 'app' | 'cause'>,
  text: string,
): Promise<{ publicKey: string; encrypted: Uint8Array }> {
  app.limits.check('source', cause.source)
  const found = await takeForHeadless(app, readHeadlessCode(text, 'code'))
  if (!found) throw notThere()
  return found
}

function notThere(): AppError {
  return new AppError('NOT_FOUND', 'the sign-in has not been finished, or was fetched already')
}
