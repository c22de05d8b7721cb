// Device sign-in in the browser: shows the waiting program of a code, and approves or refuses it.
import type { Work } from '#app.ts'
import { answerDevice, type DeviceCode, findWaiting, readUserCode } from '#domains/iam/sessions/device-codes.service.ts'
import type { Session } from '#domains/iam/sign-in/sign-in.service.ts'
import { permissionDenied } from '#lib/errors.ts'
import { operatorUid } from '../access-token.ts'
import type { Issuing } from '../exchange.ts'

export { type DeviceCode, readUserCode }

type SignInWork = Pick<Work, 'app' | 'cause' | 'log'>

/** Waiting program of a user code. Undefined if there is none. Rate limits protect codes against guessing. */
export async function findDevice(
  { app }: SignInWork,
  { source }: Issuing,
  session: Session,
  code: string,
): Promise<DeviceCode | undefined> {
  refuseOperator(session)
  app.limits.check('guess', session.identityUid)
  app.limits.check('source', source)
  const found = await findWaiting(app, code)
  if (!found) app.limits.check('refusal', source)
  return found
}

/** Approves or refuses a program. Returns false if the program is no longer waiting. */
export async function decide(
  work: SignInWork,
  session: Session,
  { code, approve }: { code: string; approve: boolean },
): Promise<boolean> {
  refuseOperator(session)
  work.app.limits.check('guess', session.identityUid)
  const isAnswered = await answerDevice(work, session, code, approve)
  if (isAnswered) work.log.info('device sign-in answered', { session: session.uid, approve })
  return isAnswered
}

/**
 * Throws PERMISSION_DENIED in a session of the operator. Such a session ends after one hour, and its permissions cannot be passed
 * on to a program.
 */
export function refuseOperator({ identityUid }: Session): void {
  if (identityUid === operatorUid)
    throw permissionDenied('the operator cannot authorize programs: sign in as a person instead')
}
