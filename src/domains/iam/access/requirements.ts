import type { Call } from '#app.ts'
import type { Caller } from '#caller.ts'
import { AppError } from '#lib/errors.ts'

/**
 * Throws PERMISSION_DENIED for a token with fewer permissions than its subject. With such a token, a caller must not get more
 * permissions, nor see sessions, push tokens or pending bindings of the subject. `what` is the refused action in the error.
 */
export function requireWholeToken({ token }: Pick<Caller, 'token'>, what: string): void {
  if (!token?.narrowed) return
  throw new AppError(
    'PERMISSION_DENIED',
    `this token is limited to some groups or capabilities, so it cannot ${what}; use a token without limits`,
    {
      reason: 'NARROWED_TOKEN',
    },
  )
}

/** Most seconds since the last sign-in for which it is recent. */
const recentSeconds = 600

/**
 * Throws FAILED_PRECONDITION unless the person signed in within the last ten minutes. Workloads and the operator do not sign in,
 * so they need no recent sign-in.
 */
export function requireRecentSignIn({ app, caller }: Pick<Call, 'app' | 'caller'>): void {
  const { session } = caller
  if (!session || caller.operator) return
  if (app.clock().getTime() / 1000 - session.authTime <= recentSeconds) return
  throw new AppError(
    'FAILED_PRECONDITION',
    'this operation needs a sign-in within the last ten minutes; sign in again (programs: with max_age=0)',
    {
      reason: 'REAUTHENTICATION_REQUIRED',
    },
  )
}
