/** Codes of google.rpc, each with its number and its HTTP status. */
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

/** All values of `ErrorInfo.reason` that are more specific than a code. `docs/errors.md` is generated from this table. */
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

/** All types of violations in a `PreconditionFailure`. */
export const violationTypes = {
  BUILT_IN: 'built-in roles cannot be changed',
  CONTENT_KEPT: 'a retention policy, a hold or an immutable tag prevents the deletion',
  CUSTOM_ASSEMBLY_DISABLED: 'custom assembly is not enabled for the repository',
  DNS_RECORD_MISSING: 'DNS has no record that verifies the domain',
  DOMAIN_VERIFIED_ELSEWHERE: 'another organization has verified the domain',
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
  NOT_IN_TAG_HISTORY: 'the tag never had the digest to restore',
  NOTHING_TO_STATE: 'the image has no findings, and the format has no document without findings; use another format',
  REPO_SYNCED: 'the repository is a copy of another one on this server, and is changed there',
  RESOURCE_IN_USE: 'other resources still refer to the resource',
  RESOURCE_NOT_EMPTY: 'the group still has resources; delete them first',
  REVIEW_STATE: 'the review of the advisory event cannot change from its state to this one',
  SCIM_TOKEN_ISSUED: 'the identity provider already has a SCIM token; regenerate it instead',
  SESSION_RIGHTS:
    'the caller has the capability only through an external group, which ends with the session; it needs a role binding',
  STILL_WAITING: 'the delivery is still pending, so it cannot be sent again',
  TAG_HISTORY_CONFLICT: 'the history to import contradicts the stored history',
  TAG_IMMUTABLE: 'a tag protection rule makes the tag immutable',
  TAG_UNCHANGED: 'the tag already has the digest to restore',
  TAGS_GUARDED: 'the repository cannot become a mirror, because a rule or a hold protects its tags',
  TOO_FEW_OWNERS: 'the organization needs more owners with a role binding of their own first',
  VERIFIED_NAME: 'a verified organization cannot be renamed',
} as const
export type ViolationType = keyof typeof violationTypes

export type FieldViolation = { field: string; description: string }
export type PreconditionViolation = { type: ViolationType; subject?: string; description: string }

/** Error details that a caller can get: types of google.rpc, and one of ours. The API adds an ErrorInfo to every error. */
export type Detail =
  | { type: 'BadRequest'; fieldViolations: FieldViolation[] }
  | { type: 'ResourceInfo'; resourceType: string; resourceName: string; description?: string }
  | { type: 'PreconditionFailure'; violations: PreconditionViolation[] }
  | { type: 'RetryInfo'; retryDelaySeconds: number }
  | { type: 'TermsNotAccepted'; missing: { id: string; label: string; url: string }[] }

export type ErrorOptions = {
  details?: readonly Detail[]
  reason?: Reason | Code
  /** Values in the message that programs can read, in addition to the request ID. */
  metadata?: Readonly<Record<string, string>>
  http?: number
  cause?: unknown
}

/** Error that the caller sees, with `message` and `details`. `cause` is for the log only. */
export class AppError extends Error {
  override name = 'AppError'
  readonly code: Code
  readonly details: readonly Detail[]
  /** ErrorInfo.reason. The name of the code if there is no more specific reason. */
  readonly reason: Reason | Code
  /** Additional values in ErrorInfo.metadata. */
  readonly metadata: Readonly<Record<string, string>>
  /** HTTP status. It differs from the status of the code only if HTTP has a more specific one (405, 413). */
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

/** Error INVALID_ARGUMENT with all invalid fields. Field paths are in snake_case, relative to the resource. */
export function invalid(...fieldViolations: [FieldViolation, ...FieldViolation[]]): AppError {
  const [first] = fieldViolations
  return new AppError('INVALID_ARGUMENT', `Invalid argument: ${first.field}: ${first.description}`, {
    details: [{ type: 'BadRequest', fieldViolations }],
  })
}

/**
 * Awaits `work`. If it throws INVALID_ARGUMENT, replaces the field names by those of the caller's version of the API. `names`
 * maps each part of a path; an empty name removes the part.
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

/** Maximum number of violations in one error. A request may have hundreds of thousands. */
export const maxViolations = 100

/** Throws one INVALID_ARGUMENT with at most a hundred of the violations. Does nothing if there are none. */
export function refuseIfAny(violations: readonly FieldViolation[]): void {
  const [first, ...more] = violations.slice(0, maxViolations)
  if (first) throw invalid(first, ...more)
}

/** Error NOT_FOUND. `resourceType` is the type in the contract, such as registry.pinfold.dev/Repo. */
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

/** Maximum number of values that an error lists. A longer list, such as that of all capabilities, is left out. */
const mostValues = 24

/** Message for a value that the enum does not have. Lists the known values if they are few. */
export function noKnownValue({ name, values }: { name: string; values: readonly { name: string }[] }): string {
  const known = values.map((value) => value.name).filter((one) => !one.endsWith('UNSPECIFIED'))
  const which = known.length > mostValues ? '' : `; the known values are ${known.join(', ')}`
  return `is not a known value of ${name}${which}`
}

/** Error PERMISSION_DENIED. Its message is the same for existing and missing resources, so that strangers learn nothing. */
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
 * Error RESOURCE_EXHAUSTED for a quota. A retry does not help: something must be deleted, or the limit raised. `what` is the
 * counted resource, such as `repositories`.
 */
export function limitExceeded(quota: string, what: string, used: number, limit: number): AppError {
  const over = `the organization would exceed its quota of ${limit} ${what} (${used} in use)`
  return new AppError('RESOURCE_EXHAUSTED', `${over}; delete some, or ask the operator about the quota`, {
    reason: 'RESOURCE_LIMIT_EXCEEDED',
    metadata: { quota, used: String(used), limit: String(limit) },
  })
}

/** Error RESOURCE_EXHAUSTED for a rate limit. A retry may succeed after `retryDelaySeconds`. */
export function tooMany(message: string, retryDelaySeconds: number): AppError {
  return new AppError('RESOURCE_EXHAUSTED', message, {
    reason: 'RATE_LIMITED',
    details: [{ type: 'RetryInfo', retryDelaySeconds }],
  })
}

/** Error UNAVAILABLE. A retry may succeed in a moment, here or on another server. */
export function unavailable(message: string, cause?: unknown): AppError {
  return new AppError('UNAVAILABLE', message, { details: [{ type: 'RetryInfo', retryDelaySeconds: 1 }], cause })
}

/** Error UNAVAILABLE for an overload. Nothing is broken, and a retry after a second helps. */
export function busy(message: string, cause?: unknown): AppError {
  const details = [{ type: 'RetryInfo', retryDelaySeconds: 1 }] as const
  return new AppError('UNAVAILABLE', message, { reason: 'TOO_BUSY', details, cause })
}

/** Seconds after which a retry may succeed. Undefined if a retry does not help. */
export function retryAfterOf({ details }: AppError): number | undefined {
  return details.find((detail) => detail.type === 'RetryInfo')?.retryDelaySeconds
}

/** Retry-After header of an error. Empty if a retry does not help. */
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
