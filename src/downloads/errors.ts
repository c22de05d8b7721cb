// What goes wrong at this door, as plain text.
import { isUnavailable } from '#db/unavailable.ts'
import { AppError, unavailable } from '#lib/errors.ts'

/** What is answered; `cause` is for the log. */
export type Refusal = { status: number; message: string; headers: Record<string, string>; cause: unknown }

export function refusalOf(thrown: unknown): Refusal {
  const error = isUnavailable(thrown) ? unavailable('the database cannot be reached now', thrown) : thrown
  if (!(error instanceof AppError)) {
    const message = 'something went wrong on our side; the request id helps to find out what'
    return { status: 500, message, headers: {}, cause: error }
  }
  const retry = error.details.find((detail) => detail.type === 'RetryInfo')?.retryDelaySeconds
  const headers: Record<string, string> = retry === undefined ? {} : { 'retry-after': String(retry) }
  return { status: error.http, message: error.message, headers, cause: error }
}
