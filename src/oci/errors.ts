// Errors in the JSON of the OCI distribution specification: { errors: [{ code, message, detail }] }. Each code has a default
// status.
import { isUnavailable, whyUnavailable } from '#db/unavailable.ts'
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
  /** HTTP status, if a more precise one than that of the code exists, such as 416. */
  status?: number
  headers?: Record<string, string>
  /** Original error, for the log only. */
  cause?: unknown
}

/** Error response to a registry client. */
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

/** Error if the repository was deleted while a client pushed to it. */
export function deletedMeanwhile(): OciError {
  return new OciError('NAME_UNKNOWN', 'the repository was deleted during the push; push again')
}

/** Error if the received content has another digest than the request. */
export function wrongDigest(digest: string): OciError {
  const message = `the received content has the digest ${digest}, not the digest in the request; push it again`
  return new OciError('DIGEST_INVALID', message, { detail: { digest } })
}

/** The message is the same whether or not the repository exists. */
const noAccess =
  'you do not have access to this repository, or it does not exist; check that its path begins with your organization'

/**
 * DENIED error. The default message is for callers without any access. The message is the same whether or not the repository
 * exists.
 */
export function denied(message = noAccess): OciError {
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

/** Converts an error of the management API to an OCI error. Internal errors become UNKNOWN. */
export function toOciError(error: unknown): OciError {
  if (error instanceof OciError) return error
  if (isUnavailable(error)) {
    const options = { headers: { 'retry-after': '1' }, cause: error }
    return new OciError('UNAVAILABLE', whyUnavailable(error), options)
  }
  if (error instanceof AppError && error.reason === 'ETAG_MISMATCH') return preconditionError(error)
  // The client has disconnected, so nobody reads the response. The status appears in the log and in the metrics.
  if (error instanceof AppError && error.code === 'CANCELLED') {
    return new OciError('UNAVAILABLE', error.message, { status: error.http, cause: error })
  }
  // The listener sets its own HTTP status for invalid requests.
  if (error instanceof AppError && error.http !== codes[error.code].http) {
    return new OciError('UNSUPPORTED', error.message, { status: error.http })
  }
  const code = error instanceof AppError ? asOci[error.code] : undefined
  if (!(error instanceof AppError) || code === undefined) {
    return new OciError(
      'UNKNOWN',
      'internal error; the server log has the cause under the request ID (header X-Request-Id)',
      {
        cause: error,
      },
    )
  }
  if (error.reason === 'RESOURCE_LIMIT_EXCEEDED') {
    const { quota, used, limit } = error.metadata
    const detail = { quota, used: Number(used), limit: Number(limit) }
    return new OciError('DENIED', `quota exceeded: ${error.message}`, { detail, cause: error })
  }
  const { until, rule, tags } = error.metadata
  if (rule !== undefined) {
    // Content under retention conflicts with the deletion: 409. A protected tag needs a permission that the caller lacks: 403.
    const status = error.reason === 'CONTENT_KEPT' ? 409 : 403
    const detail = { ...(until === undefined ? {} : { until: until || null }), rule, tags: tags?.split(',') ?? [] }
    return new OciError('DENIED', error.message, { status, detail, cause: error })
  }
  return new OciError(code, error.message, { headers: retryHeaders(error), cause: error })
}

/** Error if a precondition fails. It has the current digest of the tag, so that the client can decide whether to retry. */
function preconditionError(error: AppError): OciError {
  const digest = error.metadata.etag ?? ''
  const headers: Record<string, string> = digest === '' ? {} : { etag: `"${digest}"` }
  return new OciError('DENIED', error.message, { status: 412, detail: { digest }, headers, cause: error })
}

/**
 * True if the server refused what the caller requested. Not for 401, which starts each sign-in, for a client that disconnected,
 * or for server errors.
 */
export function isRefusal({ status }: OciError): boolean {
  return status !== 401 && status !== codes.CANCELLED.http && status < 500
}

export function ociErrorJson({ code, message, detail }: OciError): string {
  return JSON.stringify({ errors: [{ code, message, ...(detail === undefined ? {} : { detail }) }] })
}
