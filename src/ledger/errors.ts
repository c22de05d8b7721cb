// Error responses of the transparency logs, as plain text. Clients of logs evaluate only the status.
import { isUnavailable, whyUnavailable } from '#db/unavailable.ts'
import { AppError, retryHeaders } from '#lib/errors.ts'

/** Error response. `cause` is only for the log. */
export type Refusal = { status: number; message: string; headers: Record<string, string>; cause: unknown }

export function refusalOf(error: unknown): Refusal {
  if (isUnavailable(error)) {
    return {
      status: 503,
      message: whyUnavailable(error),
      headers: { 'retry-after': '1' },
      cause: error,
    }
  }
  if (!(error instanceof AppError)) {
    const message = 'internal error; the server log has the cause under the request ID of this response'
    return { status: 500, message, headers: {}, cause: error }
  }
  const challenge = error.code === 'UNAUTHENTICATED' ? { 'www-authenticate': 'Bearer' } : {}
  return { status: error.http, message: error.message, headers: { ...retryHeaders(error), ...challenge }, cause: error }
}
