// The errors of OCI distribution: { errors: [{ code, message, detail }] }, each code with its usual status.
import { isUnavailable } from '#db/unavailable.ts'
import { AppError, codes, retryHeaders } from '#lib/errors.ts'

/** Codes of the distribution specification, "Error Codes", and of the token specification (UNAUTHORIZED, DENIED). */
export const ociCodes = {
  BLOB_UNKNOWN: 404,
  BLOB_UPLOAD_INVALID: 400,
  BLOB_UPLOAD_UNKNOWN: 404,
  DIGEST_INVALID: 400,
  MANIFEST_BLOB_UNKNOWN: 404,
  MANIFEST_INVALID: 400,
  MANIFEST_UNKNOWN: 404,
  NAME_INVALID: 400,
  NAME_UNKNOWN: 404,
  SIZE_INVALID: 413,
  UNAUTHORIZED: 401,
  DENIED: 403,
  UNSUPPORTED: 405,
  TOOMANYREQUESTS: 429,
  UNAVAILABLE: 503,
  UNKNOWN: 500,
} as const
export type OciCode = keyof typeof ociCodes

export type OciErrorOptions = {
  detail?: unknown
  /** Where HTTP has a better word than the code's own, such as 416. */
  status?: number
  headers?: Record<string, string>
  /** For the log only. */
  cause?: unknown
}

/** A failure that the client of the registry is to see. */
export class OciError extends Error {
  override name = 'OciError'
  readonly code: OciCode
  readonly status: number
  readonly detail: unknown
  readonly headers: Record<string, string>

  constructor(code: OciCode, message: string, options: OciErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.status = options.status ?? ociCodes[code]
    this.detail = options.detail
    this.headers = options.headers ?? {}
  }
}

/** The same words whether or not there is such a repository. */
const strange =
  'access to the repository is denied: look whether its path begins with an organisation that you have a role in'

/** Without a message as whoever has nothing to do with the place is told, whether or not there is something. */
export function denied(message = strange): OciError {
  return new OciError('DENIED', message)
}

const asOci: Partial<Record<AppError['code'], OciCode>> = {
  INVALID_ARGUMENT: 'NAME_INVALID',
  NOT_FOUND: 'NAME_UNKNOWN',
  PERMISSION_DENIED: 'DENIED',
  UNAUTHENTICATED: 'UNAUTHORIZED',
  RESOURCE_EXHAUSTED: 'TOOMANYREQUESTS',
  FAILED_PRECONDITION: 'DENIED',
  ALREADY_EXISTS: 'UNAVAILABLE',
  UNAVAILABLE: 'UNAVAILABLE',
}

/** What the management API would say, in the words of OCI; everything that we did not mean to say becomes UNKNOWN. */
export function toOciError(error: unknown): OciError {
  if (error instanceof OciError) return error
  if (isUnavailable(error)) {
    const options = { headers: { 'retry-after': '1' }, cause: error }
    return new OciError('UNAVAILABLE', 'the database cannot be reached now', options)
  }
  if (error instanceof AppError && error.reason === 'ETAG_MISMATCH') return preconditionError(error)
  // Nobody reads it, but the log and the metrics have a status of it.
  if (error instanceof AppError && error.code === 'CANCELLED') {
    return new OciError('UNAVAILABLE', error.message, { status: error.http, cause: error })
  }
  // What the port itself refuses has a status of its own.
  if (error instanceof AppError && error.http !== codes[error.code].http) {
    return new OciError('UNSUPPORTED', error.message, { status: error.http })
  }
  const code = error instanceof AppError ? asOci[error.code] : undefined
  if (!(error instanceof AppError) || code === undefined) {
    return new OciError('UNKNOWN', 'something went wrong on our side; the request id helps to find out what', {
      cause: error,
    })
  }
  if (error.reason === 'RESOURCE_LIMIT_EXCEEDED') {
    const { quota, used, limit } = error.metadata
    const detail = { quota, used: Number(used), limit: Number(limit) }
    return new OciError('DENIED', `quota exceeded: ${error.message}`, { detail, cause: error })
  }
  const { until, rule, tags } = error.metadata
  if (rule !== undefined) {
    // What is kept is there, and in the way; whoever may not move a tag is only not allowed to.
    const status = error.reason === 'CONTENT_KEPT' ? 409 : 403
    const detail = { ...(until === undefined ? {} : { until: until || null }), rule, tags: tags?.split(',') ?? [] }
    return new OciError('DENIED', error.message, { status, detail, cause: error })
  }
  return new OciError(code, error.message, { headers: retryHeaders(error), cause: error })
}

/** Names what is there now, so that a client can decide whether to try again from there. */
function preconditionError(error: AppError): OciError {
  const digest = error.metadata.etag ?? ''
  const headers: Record<string, string> = digest === '' ? {} : { etag: `"${digest}"` }
  return new OciError('DENIED', error.message, { status: 412, detail: { digest }, headers, cause: error })
}

/**
 * Whether it says something of what was asked for. Clients begin without a token, to hear where to get one; they may go before
 * they are answered; and what fails on our side was refused to nobody.
 */
export function isRefusal({ status }: OciError): boolean {
  return status !== 401 && status !== codes.CANCELLED.http && status < 500
}

export function ociErrorJson({ code, message, detail }: OciError): string {
  return JSON.stringify({ errors: [{ code, message, ...(detail === undefined ? {} : { detail }) }] })
}
