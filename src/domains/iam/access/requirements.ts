import type { Call } from '#app.ts'
import type { Caller } from '#caller.ts'
import { AppError } from '#lib/errors.ts'

/**
 * Throws PERMISSION_DENIED for a token that was made to do less than its subject may: it must not make the subject able to
 * do more, nor tell what others have in store for them. `what` is what such a token may not do.
 */
export function requireWholeToken({ token }: Pick<Caller, 'token'>, what: string): void {
  if (!token?.narrowed) return
  throw new AppError('PERMISSION_DENIED', `a token narrowed by scopes or capabilities may not ${what}`, {
    reason: 'NARROWED_TOKEN',
  })
}

/** A sign-in is recent for so long, in seconds. */
const recentSeconds = 600

/**
 * Throws FAILED_PRECONDITION for a person whose last sign-in is not of the last ten minutes, or who knows when. Workloads and
 * the operator sign in nowhere, and pass.
 */
export function requireRecentSignIn({ app, caller }: Pick<Call, 'app' | 'caller'>): void {
  const { session } = caller
  if (!session || caller.operator) return
  if (app.clock().getTime() / 1000 - session.authTime <= recentSeconds) return
  throw new AppError(
    'FAILED_PRECONDITION',
    'this takes a sign-in of the last ten minutes; sign in again with max_age=0',
    {
      reason: 'REAUTHENTICATION_REQUIRED',
    },
  )
}
