// Errors in the format of OAuth (RFC 6749, 5.2).
import { AppError, retryHeaders } from '#lib/errors.ts'
import { ScopeOutOfReach } from './narrowing.ts'

export type OAuthAnswer = { status: number; body: object; headers?: Record<string, string> }

/** Error response of an OAuth endpoint. `error` is an error code of the protocol. */
export class OAuthRefusal extends Error {
  override name = 'OAuthRefusal'
  readonly error: string
  constructor(error: string, description: string) {
    super(description)
    this.error = error
  }
}

export function refused(status: number, error: string, description: string): OAuthAnswer {
  return { status, body: { error, error_description: description } }
}

/** Awaits `work`. Returns its result, or its error in the format of OAuth. Rethrows errors of the server. */
export async function inOAuthWords(work: Promise<object>): Promise<OAuthAnswer> {
  try {
    return { status: 200, body: await work }
  } catch (error) {
    if (error instanceof OAuthRefusal) return refused(400, error.error, error.message)
    if (error instanceof AppError) return answerOf(error)
    throw error
  }
}

function answerOf(error: AppError): OAuthAnswer {
  const { code, message, details } = error
  if (code === 'RESOURCE_EXHAUSTED') return { ...refused(429, 'slow_down', message), headers: retryHeaders(error) }
  if (code === 'INVALID_ARGUMENT') {
    const field = details.find((detail) => detail.type === 'BadRequest')?.fieldViolations[0]?.field
    return refused(400, field === 'aud' ? 'invalid_target' : 'invalid_request', message)
  }
  if (error instanceof ScopeOutOfReach) return refused(400, 'invalid_scope', message)
  if (code === 'UNAVAILABLE' || code === 'INTERNAL') throw error
  return refused(400, 'invalid_grant', message)
}
