// Client of the public API, for commands. Each request has one token.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { codes } from '#lib/errors.ts'
import { plain } from '#lib/terminal/plain-text.ts'
import { CliError, exitCodes } from './cli-error.ts'
import { httpCall } from './http-call.ts'
import { unreachableReason } from './unreachable.ts'

const attempts = 3
const timeoutMs = 30_000
const checkServer = '; check that --api or PINFOLD_API is the URL of a Pinfold server'

export type Body = Record<string, unknown>
type SendOptions = {
  body?: object | undefined
  headers?: Record<string, string> | undefined
  /** True if the server is on this machine, so the token does not leave the machine. The URL may be http then. */
  ownMachine?: boolean
}
type Detail = { fieldViolations?: unknown; metadata?: { requestId?: unknown }; retryDelay?: unknown }
type Violation = { field?: unknown; description?: unknown }

/** Error in a server's answer. `code` is a google.rpc code. */
export class ApiError extends CliError {
  override name = 'ApiError'
  readonly code: number
  /** Invalid fields that the server named, with their problems. */
  readonly violations: readonly { field: string; description: string }[]
  constructor(code: number, message: string, cause?: unknown, violations: ApiError['violations'] = []) {
    super(exitCodeOf(code), message, cause)
    this.code = code
    this.violations = violations
  }
}

/**
 * Sends a request with a bearer token and returns the JSON of the response. Tries three times if the server is unreachable or
 * unavailable. Throws ApiError, whose message never contains a token.
 */
export async function send(
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  url: URL,
  token: string,
  { body, headers, ownMachine = false }: SendOptions = {},
): Promise<Body> {
  if (!ownMachine) checkDestination(url)
  checkToken(token, 'the token')
  // If an answer is lost, the request is sent again. The key ensures that the server does not execute it twice.
  const named = method === 'GET' ? headers : { 'idempotency-key': randomUUID(), ...headers }
  for (let attempt = 1; ; attempt++) {
    try {
      return await sendOnce(method, url, token, { body, headers: named })
    } catch (error) {
      const again = error instanceof ApiError && error.code === codes.UNAVAILABLE.number && attempt < attempts
      if (!again) throw error
      await sleep(100 + Math.random() * 100)
    }
  }
}

/**
 * A token must be one word of visible characters. For any other text, the error about an invalid header would contain the text.
 */
export function checkToken(token: string, name: string): void {
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new CliError(exitCodes.config, `${name} is not valid: a token has only ASCII characters, without spaces`)
}

/** A token must not be sent without encryption over a network. */
export function checkDestination({ protocol, hostname, origin }: URL): void {
  const stays = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname)
  if (protocol === 'https:' || (protocol === 'http:' && stays)) return
  const why = `tokens are sent over https only, and ${plain(origin)} is not https`
  throw new CliError(exitCodes.config, `nothing was sent: ${why}\nset --api or PINFOLD_API to an https:// URL`)
}

/**
 * Opens a stream of server-sent events and yields its text as it arrives. Throws ApiError if the answer is not a stream, or if
 * the connection breaks.
 */
export async function* stream(
  url: URL,
  token: string,
  { signal, headers }: { signal: AbortSignal; headers: Record<string, string> },
): AsyncGenerator<string> {
  checkDestination(url)
  checkToken(token, 'the token')
  const where = `${url.origin}${url.pathname}`
  try {
    const res = await fetch(url, {
      headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream', ...headers },
      redirect: 'manual',
      signal,
    })
    const type = res.headers.get('content-type') ?? ''
    if (!res.ok || !type.startsWith('text/event-stream')) {
      const text = await res.text()
      if (res.ok) throw new ApiError(codes.UNKNOWN.number, `${where} did not answer with an event stream${checkServer}`)
      throw errorOf(res.status, jsonOf(text), where, token)
    }
    for await (const text of res.body!.pipeThrough(new TextDecoderStream())) yield text
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw unreachable(url, error)
  }
}

/** Converts the last event of a stream, which contains an error. */
export function errorOfStatus(data: string, where: string, token: string): ApiError {
  return errorOf(500, jsonOf(data), where, token)
}

type Sent = Pick<SendOptions, 'body' | 'headers'>

async function sendOnce(method: string, url: URL, token: string, sent: Sent): Promise<Body> {
  const { ok, status, text } = await ask(method, url, token, sent)
  // A successful answer may have an empty body.
  const body = ok && text === '' ? {} : jsonOf(text)
  if (ok && body) return body
  const where = `${url.origin}${url.pathname}`
  if (ok) throw new ApiError(codes.UNKNOWN.number, `${where} did not answer with JSON${checkServer}`)
  throw errorOf(status, body, where, token)
}

async function ask(method: string, url: URL, token: string, { body: content, headers }: Sent) {
  try {
    const { status, text } = await httpCall(url, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json',
        'user-agent': 'pinfold',
        ...(content && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: content && JSON.stringify(content),
      timeoutMs,
    })
    return { ok: status >= 200 && status < 300, status, text }
  } catch (error) {
    const slow = error instanceof Error && error.name === 'TimeoutError'
    if (!slow) throw unreachable(url, error)
    const message = `${url.origin} cannot be reached: no response within ${timeoutMs / 1000} seconds; try again later`
    throw new ApiError(codes.DEADLINE_EXCEEDED.number, message, error)
  }
}

function unreachable({ origin }: URL, error: unknown): ApiError {
  const { says, next } = unreachableReason(error)
  const message = `${origin} cannot be reached: ${says}`
  return new ApiError(codes.UNAVAILABLE.number, next === '' ? message : `${message}; ${next}`, error)
}

function jsonOf(text: string): Body | undefined {
  try {
    const body: unknown = JSON.parse(text)
    return body !== null && typeof body === 'object' ? (body as Body) : undefined
  } catch {
    return undefined
  }
}

/** Converts an error answer. The code comes from the body or, if the body has no code, from the HTTP status. */
function errorOf(status: number, body: Body | undefined, where: string, token: string): ApiError {
  const safe = (text: unknown) => plain(String(text).replaceAll(token, '[token]'))
  const code = typeof body?.code === 'number' ? body.code : codeOfStatus(status)
  const details = (Array.isArray(body?.details) ? body.details : []) as (Detail | null)[]
  const message = typeof body?.message === 'string' ? safe(body.message) : `${where} answered ${status}`
  const requestId = details.find((one) => one?.metadata?.requestId)?.metadata?.requestId
  const retry = details.find((one) => one?.retryDelay)?.retryDelay

  const violations = details.flatMap((one) => (Array.isArray(one?.fieldViolations) ? one.fieldViolations : []))
  const named = (violations as (Violation | null)[]).map((one) => {
    return { field: safe(one?.field), description: safe(one?.description) }
  })
  const fields = named
    .map(({ field, description }) => `${field}: ${description}`)
    .filter((line) => !message.includes(line))
  const hints = [retry && `try again in ${safe(retry)}`, requestId && `request ID ${safe(requestId)}`].filter(Boolean)
  const lines = [`${message}${hints.length > 0 ? ` (${hints.join(', ')})` : ''}`, ...fields]
  return new ApiError(code, lines.join('\n'), undefined, named)
}

function codeOfStatus(status: number): number {
  if (status === 502) return codes.UNAVAILABLE.number
  return Object.values(codes).find(({ http }) => http === status)?.number ?? codes.UNKNOWN.number
}

function exitCodeOf(code: number): number {
  if (code === codes.UNAUTHENTICATED.number || code === codes.PERMISSION_DENIED.number) return exitCodes.refused
  if (code === codes.UNAVAILABLE.number || code === codes.DEADLINE_EXCEEDED.number) return exitCodes.unavailable
  return exitCodes.failed
}

/** Adds a next step to the message of an ApiError that has this code. */
export function withHint(error: unknown, code: number, hint: string | undefined): unknown {
  if (!(error instanceof ApiError) || error.code !== code || hint === undefined) return error
  return new ApiError(error.code, `${error.message}\n${hint}`, error.cause, error.violations)
}

/** Adds an example of a valid name if the server's error has the pattern for names. */
export function withNameHint(error: unknown): unknown {
  const patterned = ({ field, description }: { field: string; description: string }) =>
    /(?:^|\.)name$/.test(field) && description.includes('must match')
  if (!(error instanceof ApiError) || !error.violations.some(patterned)) return error
  return withHint(error, error.code, 'a name has lowercase letters, digits, spaces, dots, _ and -, such as team-1')
}
