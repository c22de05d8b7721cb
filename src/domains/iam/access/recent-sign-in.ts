// What decides who gets in wants a person who has just shown who they are, so that a session left open is not enough.
import type { Call } from '#app.ts'
import { AppError } from '#lib/errors.ts'

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
