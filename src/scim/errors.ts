// Errors of SCIM (RFC 7644, 3.12).
import { isUnavailable, whyUnavailable } from '#db/unavailable.ts'
import { AppError, retryHeaders } from '#lib/errors.ts'

/** Values of `scimType` in errors about invalid requests (RFC 7644, table 9). */
export type ScimType =
  | 'invalidFilter'
  | 'invalidPath'
  | 'invalidSyntax'
  | 'invalidValue'
  | 'mutability'
  | 'noTarget'
  | 'tooMany'
  | 'uniqueness'

/** Error response to the identity provider. */
export class ScimError extends Error {
  override name = 'ScimError'
  readonly status: number
  readonly scimType: ScimType | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    detail: string,
    more: { scimType?: ScimType; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(detail, { cause: more.cause })
    this.status = status
    this.scimType = more.scimType
    this.headers = more.headers ?? {}
  }
}

/** Error 400 about an invalid request, with its `scimType`. */
export function wrong(scimType: ScimType, detail: string): ScimError {
  return new ScimError(400, detail, { scimType })
}

/** Converts any error to a SCIM error. Unexpected errors get the status 500. */
export function toScimError(error: unknown): ScimError {
  if (error instanceof ScimError) return error
  if (isUnavailable(error)) {
    return new ScimError(503, whyUnavailable(error), {
      headers: { 'retry-after': '1' },
      cause: error,
    })
  }
  if (!(error instanceof AppError)) {
    const detail = 'internal error; the server log has the cause under the request ID of this error'
    return new ScimError(500, detail, { cause: error })
  }
  const { code, message, http } = error
  if (code === 'ALREADY_EXISTS') return new ScimError(409, message, { scimType: 'uniqueness' })
  if (code === 'INVALID_ARGUMENT' && http === 400) return wrong('invalidValue', message)
  if (code === 'UNAUTHENTICATED') return new ScimError(401, message, { headers: { 'www-authenticate': 'Bearer' } })
  // With 429, the provider would retry. A retry is useless while the limit is reached, so the status is 403.
  if (error.reason === 'RESOURCE_LIMIT_EXCEEDED') return new ScimError(403, message)
  return new ScimError(http, message, { headers: retryHeaders(error), cause: error })
}

export function scimErrorJson({ status, scimType, message }: ScimError): string {
  return JSON.stringify({
    schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
    status: String(status),
    ...(scimType ? { scimType } : {}),
    detail: message,
  })
}
