import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { anyUnpack } from '@bufbuild/protobuf/wkt'
import { ErrorInfoSchema } from '#gen/google/rpc/error_details_pb.ts'
import { StatusSchema } from '#gen/google/rpc/status_pb.ts'
import { AppError, type Code, codes, failedPrecondition, invalid, notFound } from '#lib/errors.ts'
import { errorJson, errorStatus, renderError, toAppError } from './errors.ts'

const withCode = (code: string, more: object = {}) => Object.assign(new Error('10.0.0.1 said no'), { code, ...more })

test('returns an AppError unchanged', () => {
  const error = notFound('registry.pinfold.dev/Repo', 'web')
  assert.equal(toAppError(error), error)
})

test('maps an unavailable database to UNAVAILABLE with Retry-After, and hides the cause', () => {
  const failures = [
    withCode('ECONNREFUSED'),
    withCode('57P01'),
    withCode('08006'),
    withCode('40001'),
    withCode('ERR_SQLITE_ERROR', { errcode: 5 }),
    withCode('ENOENT', { syscall: 'connect' }),
  ]
  for (const cause of failures) {
    const error = toAppError(cause)
    const rendered = renderError(error, 'request-1', 'pinfold.dev')
    assert.deepEqual([rendered.code, rendered.http, rendered.retryAfter], ['UNAVAILABLE', 503, 1], cause.message)
    assert.equal(error.cause, cause)
    const text = errorJson(rendered)
    assert.ok(text.includes('"retryDelay":"1s"'), text)
    assert.ok(!text.includes('10.0.0.1'), text)
  }
})

test('maps any other thrown value to INTERNAL, and hides it', () => {
  const thrown = [new TypeError('secret'), withCode('23505', { detail: 'secret' }), 'secret', undefined, { secret: 1 }]
  for (const cause of thrown) {
    const error = toAppError(cause)
    const rendered = renderError(error, 'request-1', 'pinfold.dev')
    assert.deepEqual([rendered.code, rendered.http, rendered.retryAfter], ['INTERNAL', 500, undefined])
    assert.equal(error.cause, cause)
    assert.ok(!errorJson(rendered).includes('secret'))
    assert.ok(!Buffer.from(errorStatus(rendered)).includes('secret'))
  }
})

test('each code has its number and HTTP status, in JSON and in the gRPC status', () => {
  const expected: Record<Code, [number, number]> = {
    CANCELLED: [1, 499],
    UNKNOWN: [2, 500],
    INVALID_ARGUMENT: [3, 400],
    DEADLINE_EXCEEDED: [4, 504],
    NOT_FOUND: [5, 404],
    ALREADY_EXISTS: [6, 409],
    PERMISSION_DENIED: [7, 403],
    RESOURCE_EXHAUSTED: [8, 429],
    FAILED_PRECONDITION: [9, 400],
    ABORTED: [10, 409],
    OUT_OF_RANGE: [11, 400],
    UNIMPLEMENTED: [12, 501],
    INTERNAL: [13, 500],
    UNAVAILABLE: [14, 503],
    DATA_LOSS: [15, 500],
    UNAUTHENTICATED: [16, 401],
  }
  assert.deepEqual(Object.keys(expected), Object.keys(codes))
  for (const [code, [number, http]] of Object.entries(expected) as [Code, [number, number]][]) {
    const rendered = renderError(new AppError(code, 'sorry'), 'request-1', 'errors.example.com')
    assert.equal(rendered.http, http, code)
    const json = JSON.parse(errorJson(rendered)) as { code: number; message: string; details: object[] }
    const metadata = { requestId: 'request-1' }
    const info = { reason: code, domain: 'errors.example.com', metadata }
    const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', ...info }]
    assert.deepEqual(json, { code: number, message: 'sorry', details })

    const status = fromBinary(StatusSchema, errorStatus(rendered))
    assert.deepEqual([status.code, status.message, status.details.length], [number, 'sorry', 1])
    const { reason, domain, metadata: sent } = anyUnpack(status.details[0]!, ErrorInfoSchema)!
    assert.deepEqual({ reason, domain, metadata: sent }, info)
  }
})

test('the ErrorInfo contains a reason that is more specific than the code', () => {
  const error = new AppError('RESOURCE_EXHAUSTED', 'too many repos', { reason: 'RESOURCE_LIMIT_EXCEEDED' })
  const { details } = JSON.parse(errorJson(renderError(error, 'request-1', 'pinfold.dev')))
  assert.equal(details[0].reason, 'RESOURCE_LIMIT_EXCEEDED')
})

test('keeps quotes, line breaks and all languages in error texts', () => {
  const description = '"ä\n\u2028\\ 𝄞'
  for (const error of [
    invalid({ field: 'name', description }),
    failedPrecondition({ type: 'RESOURCE_NOT_EMPTY', description }),
  ]) {
    const rendered = renderError(error, 'request-1', 'pinfold.dev')
    const { message, details } = JSON.parse(errorJson(rendered))
    assert.ok(message.endsWith(description))
    assert.equal((details[1].fieldViolations ?? details[1].violations)[0].description, description)
    assert.equal(fromBinary(StatusSchema, errorStatus(rendered)).message, message)
  }
})
