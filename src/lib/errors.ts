/** The google.rpc codes, each with its number on the wire and the HTTP status it maps to. */
export const codes = {
  CANCELLED: { number: 1, http: 499 },
  UNKNOWN: { number: 2, http: 500 },
  INVALID_ARGUMENT: { number: 3, http: 400 },
  DEADLINE_EXCEEDED: { number: 4, http: 504 },
  NOT_FOUND: { number: 5, http: 404 },
  ALREADY_EXISTS: { number: 6, http: 409 },
  PERMISSION_DENIED: { number: 7, http: 403 },
  RESOURCE_EXHAUSTED: { number: 8, http: 429 },
  FAILED_PRECONDITION: { number: 9, http: 400 },
  ABORTED: { number: 10, http: 409 },
  OUT_OF_RANGE: { number: 11, http: 400 },
  UNIMPLEMENTED: { number: 12, http: 501 },
  INTERNAL: { number: 13, http: 500 },
  UNAVAILABLE: { number: 14, http: 503 },
  DATA_LOSS: { number: 15, http: 500 },
  UNAUTHENTICATED: { number: 16, http: 401 },
} as const
export type Code = keyof typeof codes

/** Every `ErrorInfo.reason` that is more specific than the name of its code; `docs/errors.md` is made from this table. */
export const reasons = {
  EVENT_NOT_KEPT: {
    code: 'OUT_OF_RANGE',
    doc: 'the event after which a stream should resume is no longer stored; start a stream without it',
  },
  ANSWER_UNKNOWN: {
    code: 'ABORTED',
    doc: 'a request with this `Idempotency-Key` is still running, or its response was lost; read the resource to see its state',
  },
  CONTENT_KEPT: {
    code: 'FAILED_PRECONDITION',
    doc: 'a retention policy, a hold or an immutable tag prevents the deletion; the metadata has `until`, `rule` and `tags`',
  },
  DEPROVISIONED: {
    code: 'PERMISSION_DENIED',
    doc: 'the identity provider has deactivated or deleted the account of the user over SCIM',
  },
  ETAG_MISMATCH: {
    code: 'ABORTED',
    doc: 'the resource has changed since the client read its etag; read it again and repeat the change',
  },
  INVITE_EMAIL_MISMATCH: { code: 'PERMISSION_DENIED', doc: 'the invitation is for another email address' },
  INVITE_EXPIRED: { code: 'PERMISSION_DENIED', doc: 'the invitation has expired' },
  INVITE_INVALID: {
    code: 'PERMISSION_DENIED',
    doc: 'the invitation does not exist, was already used, or its author is no longer allowed to invite',
  },
  INVITE_REQUIRED: { code: 'PERMISSION_DENIED', doc: 'new users need the code of an invitation to create an account' },
  LIST_TOO_LONG: {
    code: 'RESOURCE_EXHAUSTED',
    doc: 'the response is too long, and the method has no pages; the message has an alternative',
  },
  RATE_LIMITED: {
    code: 'RESOURCE_EXHAUSTED',
    doc: 'too many requests; `RetryInfo` has the time to wait before the next attempt',
  },
  REAUTHENTICATION_REQUIRED: {
    code: 'FAILED_PRECONDITION',
    doc: 'the user has to sign in again, because the call needs a sign-in within the last ten minutes',
  },
  REGISTRATION_CLOSED: { code: 'PERMISSION_DENIED', doc: 'registration is disabled on this server' },
  REGISTRATION_REQUIRED: { code: 'NOT_FOUND', doc: 'the user has no account, and signing in does not create one' },
  REQUEST_ID_REUSED: {
    code: 'INVALID_ARGUMENT',
    doc: 'the caller used this `Idempotency-Key` for another request within the last 24 hours',
  },
  RESOURCE_LIMIT_EXCEEDED: {
    code: 'RESOURCE_EXHAUSTED',
    doc: 'the organization has reached a quota; the metadata has `quota`, `used` and `limit`',
  },
  NARROWED_TOKEN: {
    code: 'PERMISSION_DENIED',
    doc: 'the token is limited by scopes or capabilities, and the call needs a token without such a limit',
  },
  TAG_IMMUTABLE: {
    code: 'FAILED_PRECONDITION',
    doc: 'a tag protection rule makes the tag immutable; the metadata has `rule` and `tags`',
  },
  TAGS_GUARDED: {
    code: 'FAILED_PRECONDITION',
    doc: 'the repository cannot become a mirror, because a rule or a hold protects its tags; the metadata has `rule` and `tags`',
  },
  TAG_MOVERS: {
    code: 'PERMISSION_DENIED',
    doc: 'a tag protection rule allows only others to update the tag; the metadata has `rule` and `tags`',
  },
  TERMS_NOT_ACCEPTED: { code: 'FAILED_PRECONDITION', doc: 'the organization has to accept the terms first' },
  TOO_BUSY: {
    code: 'UNAVAILABLE',
    doc: 'the server is overloaded; `RetryInfo` has the time to wait before the next attempt',
  },
  TOO_MANY_PENDING_BINDINGS: {
    code: 'RESOURCE_EXHAUSTED',
    doc: 'the person has too many pending role bindings in the organization; they have to accept or decline some first',
  },
  TOO_MANY_STREAMS: {
    code: 'RESOURCE_EXHAUSTED',
    doc: 'the caller has the largest allowed number of open event streams',
  },
} as const satisfies Record<string, { code: Code; doc: string }>
export type Reason = keyof typeof reasons

/** Every type of a `PreconditionFailure` violation. */
export const violationTypes = {
  BUILT_IN: 'built-in roles cannot be changed',
  CONTENT_KEPT: 'a retention policy, a hold or an immutable tag prevents the deletion',
  CUSTOM_ASSEMBLY_DISABLED: 'custom assembly is not enabled for the repository',
  EVENT_NOT_KEPT: 'the event of the delivery is no longer stored, so it cannot be sent again',
  IMAGE_TOO_LARGE: 'the image has more manifests or a larger SBOM than one request reads',
  LAST_OWNER: 'the organization would have no owner any more',
  LEDGER_IN_USE:
    'the history cannot be deleted yet, because a repository still uses it or its content is still being removed',
  MANIFEST_NOT_FOUND: 'the repository does not have the manifest for the tag',
  PARENT_NOT_UNIQUE: 'the request names no group, and the caller is allowed to create the resource in several groups',
  PLAN_STATE: 'the retention plan is not complete yet, was applied before, or has expired',
  QUEUE_FULL: 'the subscription has the largest allowed number of pending deliveries',
  REPO_FOLLOWED: 'the repository is a mirror, so only its upstream changes its tags',
  NOTHING_TO_STATE: 'the image has no findings, and the format has no document without findings; use another format',
  REPO_SYNCED: 'the repository is a copy of another one on this server, and is changed there',
  RESOURCE_IN_USE: 'other resources still refer to the resource',
  RESOURCE_NOT_EMPTY: 'the group still has resources; delete them first',
  REVIEW_STATE: 'the review of the advisory event cannot change from its state to this one',
  SCIM_TOKEN_ISSUED: 'the identity provider already has a SCIM token; regenerate it instead',
  SESSION_RIGHTS:
    'the caller has the permission only through an external group, which ends with the session; it needs a role binding',
  STILL_WAITING: 'the delivery is still pending, so it cannot be sent again',
  TAG_HISTORY_CONFLICT: 'the history to import contradicts the stored history',
  TAG_IMMUTABLE: 'a tag protection rule makes the tag immutable',
  TAGS_GUARDED: 'the repository cannot become a mirror, because a rule or a hold protects its tags',
  TOO_FEW_OWNERS: 'the organization needs more owners with a role binding of their own first',
  VERIFIED_NAME: 'a verified organization cannot be renamed',
} as const
export type ViolationType = keyof typeof violationTypes

export type FieldViolation = { field: string; description: string }
export type PreconditionViolation = { type: ViolationType; subject?: string; description: string }

/** Typed details that a caller can get: those of google.rpc and one of ours. The API adds an ErrorInfo to every error. */
export type Detail =
  | { type: 'BadRequest'; fieldViolations: FieldViolation[] }
  | { type: 'ResourceInfo'; resourceType: string; resourceName: string; description?: string }
  | { type: 'PreconditionFailure'; violations: PreconditionViolation[] }
  | { type: 'RetryInfo'; retryDelaySeconds: number }
  | { type: 'TermsNotAccepted'; missing: { id: string; label: string; url: string }[] }

export type ErrorOptions = {
  details?: readonly Detail[]
  reason?: Reason | Code
  /** Values of the message that programs can read, in addition to the id of the request. */
  metadata?: Readonly<Record<string, string>>
  http?: number
  cause?: unknown
}

/** Failure that the caller sees. `message` and `details` are for the caller; `cause` is for the log only. */
export class AppError extends Error {
  override name = 'AppError'
  readonly code: Code
  readonly details: readonly Detail[]
  /** ErrorInfo.reason: the name of the code unless something finer is known. */
  readonly reason: Reason | Code
  /** More of ErrorInfo.metadata. */
  readonly metadata: Readonly<Record<string, string>>
  /** The HTTP status; differs from the code's own only where HTTP has a better word (405, 413). */
  readonly http: number

  constructor(code: Code, message: string, options: ErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.details = options.details ?? []
    this.reason = options.reason ?? code
    this.metadata = options.metadata ?? {}
    this.http = options.http ?? codes[code].http
  }
}

/** Names every field that is wrong; paths are in the snake_case of the contract, relative to the resource. */
export function invalid(...fieldViolations: [FieldViolation, ...FieldViolation[]]): AppError {
  const [first] = fieldViolations
  return new AppError('INVALID_ARGUMENT', `Invalid argument: ${first.field}: ${first.description}`, {
    details: [{ type: 'BadRequest', fieldViolations }],
  })
}

/**
 * Awaits `work`, and renames the fields of an INVALID_ARGUMENT to their names in the caller's version of the API. Replaces each
 * part of a path as the table says, and drops the part if its entry is empty.
 */
export async function withFieldNames<T>(names: Readonly<Record<string, string>>, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_ARGUMENT') throw error
    const renamed = (path: string) =>
      path
        .split('.')
        .map((part) => part.replace(/^[^[]*/, (name) => (Object.hasOwn(names, name) ? names[name]! : name)))
        .filter((part) => part !== '')
        .join('.')
    const violations = error.details.flatMap((detail) => (detail.type === 'BadRequest' ? detail.fieldViolations : []))
    const [first, ...more] = violations.map(({ field, description }) => ({ field: renamed(field), description }))
    throw first ? invalid(first, ...more) : error
  }
}

/** The most violations that one error names; a request may have hundreds of thousands. */
export const maxViolations = 100

/** Throws one INVALID_ARGUMENT that names all of them, or the first hundred; does nothing when there are none. */
export function refuseIfAny(violations: readonly FieldViolation[]): void {
  const [first, ...more] = violations.slice(0, maxViolations)
  if (first) throw invalid(first, ...more)
}

/** `resourceType` is the type of the contract, such as registry.pinfold.dev/Repo. */
export function notFound(resourceType: string, resourceName: string): AppError {
  return new AppError('NOT_FOUND', `${resourceType} ${resourceName} was not found`, {
    details: [{ type: 'ResourceInfo', resourceType, resourceName }],
  })
}

/** Returns the result of a look-up. Throws NOT_FOUND if it is undefined. */
export function found<T>(value: T | undefined, resourceType: string, resourceName: string): T {
  if (value === undefined) throw notFound(resourceType, resourceName)
  return value
}

export function alreadyExists(resourceType: string, resourceName: string, description: string): AppError {
  return new AppError('ALREADY_EXISTS', `${resourceType} ${resourceName} already exists: ${description}`, {
    details: [{ type: 'ResourceInfo', resourceType, resourceName, description }],
  })
}

export function failedPrecondition(...violations: [PreconditionViolation, ...PreconditionViolation[]]): AppError {
  return new AppError('FAILED_PRECONDITION', violations.map((v) => v.description).join('; '), {
    details: [{ type: 'PreconditionFailure', violations }],
  })
}

/** The most values that an error lists; a longer list, such as of all capabilities, is left out. */
const mostValues = 24

/** Message for a value that its enum does not have. Lists the known values if they are few. */
export function noKnownValue({ name, values }: { name: string; values: readonly { name: string }[] }): string {
  const known = values.map((value) => value.name).filter((one) => !one.endsWith('UNSPECIFIED'))
  const which = known.length > mostValues ? '' : `; the known values are ${known.join(', ')}`
  return `is not a known value of ${name}${which}`
}

/** Has the same message whether or not the resource exists, so that a stranger learns nothing. */
export function permissionDenied(
  message = 'the caller does not have the required capabilities; ask an owner of the organization for a role with them',
): AppError {
  return new AppError('PERMISSION_DENIED', message)
}

/** Message for a caller without these capabilities. `isNarrowed` is true if the token is limited to some scopes or capabilities. */
export function missingCapabilities(names: readonly string[], isNarrowed = false): string {
  const needs = `the ${names.length === 1 ? 'capability' : 'capabilities'} ${names.join(', ')} here`
  const ask = 'ask an owner of the organization for a role with it'
  return isNarrowed
    ? `the token is limited to some capabilities or groups and does not have ${needs}; use another token, or ${ask}`
    : `the caller does not have ${needs}; ${ask}`
}

/**
 * A retry does not help: something has to be deleted, or the limit be raised. `what` is the counted resource, such as
 * `repositories`.
 */
export function limitExceeded(quota: string, what: string, used: number, limit: number): AppError {
  const over = `the organization would exceed its quota of ${limit} ${what} (${used} in use)`
  return new AppError('RESOURCE_EXHAUSTED', `${over}; delete some, or ask the operator about the quota`, {
    reason: 'RESOURCE_LIMIT_EXCEEDED',
    metadata: { quota, used: String(used), limit: String(limit) },
  })
}

/** The same call may succeed after `retryDelaySeconds`. */
export function tooMany(message: string, retryDelaySeconds: number): AppError {
  return new AppError('RESOURCE_EXHAUSTED', message, {
    reason: 'RATE_LIMITED',
    details: [{ type: 'RetryInfo', retryDelaySeconds }],
  })
}

/** The same call may succeed in a moment, here or on another server. */
export function unavailable(message: string, cause?: unknown): AppError {
  return new AppError('UNAVAILABLE', message, { details: [{ type: 'RetryInfo', retryDelaySeconds: 1 }], cause })
}

/** Error UNAVAILABLE for an overload, when nothing is broken and a retry after a second helps. */
export function busy(message: string, cause?: unknown): AppError {
  const details = [{ type: 'RetryInfo', retryDelaySeconds: 1 }] as const
  return new AppError('UNAVAILABLE', message, { reason: 'TOO_BUSY', details, cause })
}

/** Seconds after which the same call may succeed, where waiting helps. */
export function retryAfterOf({ details }: AppError): number | undefined {
  return details.find((detail) => detail.type === 'RetryInfo')?.retryDelaySeconds
}

/** The Retry-After header of an error, where waiting helps. */
export function retryHeaders(error: AppError): Record<string, string> {
  const seconds = retryAfterOf(error)
  return seconds === undefined ? {} : { 'retry-after': String(seconds) }
}

export function isBusy(error: unknown): boolean {
  return error instanceof AppError && error.reason === 'TOO_BUSY'
}

/** Log level of a failure of the server. An overload is a warning, since the operator does not have to act. */
export function levelOf(failure: unknown): 'warn' | 'error' {
  return isBusy(failure) ? 'warn' : 'error'
}

export function unauthenticated(message: string, cause?: unknown): AppError {
  return new AppError('UNAUTHENTICATED', message, { cause })
}

export function unimplemented(message: string): AppError {
  return new AppError('UNIMPLEMENTED', message)
}
