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
