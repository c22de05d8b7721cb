import type { Call } from '#app.ts'
import type { Caller } from '#caller.ts'
import { AppError } from '#lib/errors.ts'

/**
 * Throws PERMISSION_DENIED for a token that is narrower than the rights of its subject. Such a token must not add rights to the
 * subject, nor show the subject's sessions, push tokens and pending bindings. `what` names the refused action in the error.
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

/** Longest age of a recent sign-in, in seconds. */
const recentSeconds = 600

/**
 * Throws FAILED_PRECONDITION if a person's last sign-in is more than ten minutes ago, or at an unknown time. Workloads and the
 * operator have no sign-in and pass.
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
