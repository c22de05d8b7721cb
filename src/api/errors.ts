// Converts errors to responses. Every error becomes one `Rendered` for all entry points, and only this module decides what the
// caller sees.

import { type DescMessage, type Message, toBinary } from '@bufbuild/protobuf'
import { anyPack } from '@bufbuild/protobuf/wkt'
import { isUnavailable, whyUnavailable } from '#db/unavailable.ts'
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from '#gen/google/rpc/error_details_pb.ts'
import { StatusSchema } from '#gen/google/rpc/status_pb.ts'
import { TermsNotAcceptedDetailSchema as TermsNotAcceptedV1 } from '#gen/pinfold/iam/v1/terms_errors_pb.ts'
import { TermsNotAcceptedDetailSchema } from '#gen/pinfold/iam/v2/terms_pb.ts'
import type { Version } from '#lib/cause.ts'
import { AppError, type Code, codes, type Detail, retryAfterOf, unavailable } from '#lib/errors.ts'
import { type Vendor, vendorField, vendorResourceType, vendorTypeName } from '#lib/naming/vendor.ts'
import { jsonText } from './transcoding/json-write.ts'

export type Rendered = {
  code: Code
  http: number
  message: string
  details: readonly RenderedDetail[]
  /** Seconds, for the Retry-After header. */
  retryAfter: number | undefined
}

/** `typeName` is the name of the message with the caller's names. */
type RenderedDetail = { desc: DescMessage; typeName: string; message: Message }

/**
 * Converts any error. An error of an unavailable database becomes UNAVAILABLE. An unexpected error becomes INTERNAL,
 * without its message. The log has its cause under the same request ID.
 */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (isUnavailable(error)) return unavailable(whyUnavailable(error), error)
  return new AppError('INTERNAL', 'internal error; the server log has the cause under the request ID of this error', {
    cause: error,
  })
}

/**
 * Renders an error. `version` is the version of the called method, which determines the types of details. `vendor` is set if the
 * caller uses a vendor's names.
 */
export function renderError(
  error: AppError,
  requestId: string,
  domain: string,
  version?: Version,
  vendor?: Vendor,
): Rendered {
  const { code, http, reason, metadata } = error
  const named = vendor ? inNamesOf(error, vendor) : error
  const info = pair(ErrorInfoSchema, { reason, domain: vendor?.domain ?? domain, metadata: { ...metadata, requestId } })
  const details = [info, ...named.details.map((detail) => detailMessage(detail, version))].map((detail) =>
    vendor ? { ...detail, typeName: vendorTypeName(detail.typeName, vendor.token) } : detail,
  )
  return { code, http, message: named.message, details, retryAfter: retryAfterOf(error) }
}

/** Beginning of an INVALID_ARGUMENT message, before the field. */
const invalidStart = 'Invalid argument: '

/** Message and details of an error, with a vendor's names of resource types and fields. */
function inNamesOf({ message, details }: AppError, vendor: Vendor): { message: string; details: readonly Detail[] } {
  let text = message
  const renamed = details.map((detail): Detail => {
    if (detail.type === 'ResourceInfo') {
      const resourceType = vendorResourceType(detail.resourceType, vendor)
      text = text.replace(detail.resourceType, resourceType)
      return { ...detail, resourceType }
    }
    if (detail.type !== 'BadRequest') return detail
    const fieldViolations = detail.fieldViolations.map(({ field, description }) => {
      return { field: vendorField(field, vendor.token), description }
    })
    // Replaces the field by position, since the message may spell it differently from the detail.
    if (text.startsWith(invalidStart)) {
      const end = text.indexOf(':', invalidStart.length)
      text = invalidStart + vendorField(text.slice(invalidStart.length, end), vendor.token) + text.slice(end)
    }
    return { ...detail, fieldViolations }
  })
  return { message: text, details: renamed }
}

function detailMessage(detail: Detail, version: Version): RenderedDetail {
  switch (detail.type) {
    case 'BadRequest': {
      const fieldViolations = detail.fieldViolations.map((violation) => {
        return { $typeName: 'google.rpc.BadRequest.FieldViolation', ...violation }
      })
      return pair(BadRequestSchema, { fieldViolations })
    }
    case 'ResourceInfo': {
      const { resourceType, resourceName, description = '' } = detail
      return pair(ResourceInfoSchema, { resourceType, resourceName, owner: '', description })
    }
    case 'PreconditionFailure': {
      const violations = detail.violations.map(({ type, subject = '', description }) => {
        return { $typeName: 'google.rpc.PreconditionFailure.Violation', type, subject, description }
      })
      return pair(PreconditionFailureSchema, { violations })
    }
    case 'RetryInfo': {
      const retryDelay = { $typeName: 'google.protobuf.Duration', seconds: BigInt(detail.retryDelaySeconds), nanos: 0 }
      return pair(RetryInfoSchema, { retryDelay })
    }
    case 'TermsNotAccepted': {
      const desc = version === 'v1' ? TermsNotAcceptedV1 : TermsNotAcceptedDetailSchema
      const $typeName = desc.field.missing.message!.typeName
      return pair(desc, { missing: detail.missing.map((document) => ({ $typeName, ...document })) })
    }
  }
}

function pair(desc: DescMessage, fields: object): RenderedDetail {
  return { desc, typeName: desc.typeName, message: { $typeName: desc.typeName, ...fields } as Message }
}

/** Body of a REST error (AIP-193): code, message, and details with their types. */
export function errorJson({ code, message, details }: Rendered): string {
  const texts = details.map(({ desc, typeName, message: detail }) => {
    return `{"@type":"${typeUrl(typeName)}",${jsonText(desc, detail).slice(1)}`
  })
  return `{"code":${codes[code].number},"message":${JSON.stringify(message)},"details":[${texts.join(',')}]}`
}

/** Error as an encoded google.rpc.Status, for the `grpc-status-details-bin` trailer. */
export function errorStatus({ code, message, details }: Rendered): Uint8Array {
  return toBinary(StatusSchema, {
    $typeName: 'google.rpc.Status',
    code: codes[code].number,
    message,
    details: details.map(({ desc, typeName, message: detail }) => ({
      ...anyPack(desc, detail),
      typeUrl: typeUrl(typeName),
    })),
  })
}

function typeUrl(typeName: string): string {
  return `type.googleapis.com/${typeName}`
}
