// Client for scanner adapters with Harbor's pluggable scanner API, 1.0 and 1.1. Each request has a timeout and a size limit. The
// client follows no redirect.
import { asObject, type Json, objectsIn, textOf } from '#contents/json.ts'
import { type Outgoing, type OutgoingAnswer, OutgoingError } from '#lib/net/outgoing.ts'
import { maxReportBytes } from '../scan-reports/scan-reports.model.ts'
import { reportTypesAsked } from './scanners.model.ts'

/** Address of a scanner adapter. `headers` contain the credential of this server. */
export type ScannerAddress = {
  outgoing: Outgoing
  url: string
  headers: Readonly<Record<string, string>>
  signal: AbortSignal
}

/**
 * Kinds of scanner errors. `away`: the scanner is unreachable or overloaded. `lost`: the scanner does not know the scan.
 * `failed`: the scan has failed, or the answer is invalid. `refused`: the scanner does not accept the image.
 */
export type ScannerErrorKind = 'away' | 'lost' | 'failed' | 'refused'

/** Error of a scanner. All callers who can see the image can read the message. */
export class ScannerError extends Error {
  override name = 'ScannerError'
  readonly trouble: ScannerErrorKind
  /** Delay in ms that the scanner has requested, or 0. */
  readonly waitMs: number

  constructor(trouble: ScannerErrorKind, message: string, waitMs = 0) {
    super(message)
    this.trouble = trouble
    this.waitMs = waitMs
  }
}

/** Metadata in the answer of a scanner. */
export type Metadata = { title: string; consumes: string[]; produces: string; buildTime: string }

const maxAnswer = 256 * 1024
const maxId = 512
const updatedAt = 'harbor.scanner-adapter/vulnerability-database-updated-at'

/** Reads the metadata of a scanner. Throws ScannerError if it is unavailable or has no known report type for vulnerabilities. */
export async function readMetadata(asked: ScannerAddress): Promise<Metadata> {
  const answer = await ask(asked, 'metadata', { method: 'GET', headers: { accept: 'application/*' } }, 10_000)
  if (answer.status !== 200)
    throw new ScannerError('away', `the scanner responded with HTTP ${answer.status} to the request for its metadata`)
  const metadata = parseJson(answer.body)
  // A capability without a type is for vulnerabilities. Scanners that state types are newer.
  const able = objectsIn(metadata?.capabilities).filter(
    ({ type }) => (textOf(type) || 'vulnerability') === 'vulnerability',
  )
  const produced = able.flatMap((one) => textsIn(one.produces_mime_types)).map(plainType)
  const produces = reportTypesAsked.find((type) => produced.includes(plainType(type)))
  if (!metadata || produces === undefined)
    throw new ScannerError('away', 'the metadata of the scanner has no supported type of report')
  const { name, vendor, version } = asObject(metadata.scanner)
  const title = [textOf(name), textOf(version), vendor ? `by ${textOf(vendor)}` : ''].filter(Boolean).join(' ')
  const built = Date.parse(textOf(asObject(metadata.properties)[updatedAt]))
  return {
    title: title.replaceAll(/[^\x20-\x7e]/g, '').slice(0, 256),
    consumes: [...new Set(able.flatMap((one) => textsIn(one.consumes_mime_types)))].slice(0, 50),
    produces,
    buildTime: built > 0 && built < Date.UTC(3000, 0) ? new Date(built).toISOString() : '',
  }
}

/** Image to scan, and the registry to pull it from. */
export type ScanOrder = {
  registryUrl: string
  authorization: string
  repository: string
  digest: string
  mediaType: string
  produces: string
}

/** Starts a scan. Returns the ID that the scanner gives the scan. */
export async function beginScan(asked: ScannerAddress, order: ScanOrder): Promise<string> {
  const { registryUrl: url, authorization, repository, digest, mediaType, produces } = order
  const body = JSON.stringify({
    registry: { url, authorization },
    artifact: { repository, digest, mime_type: mediaType },
    enabled_capabilities: [{ type: 'vulnerability', produces_mime_types: [produces] }],
  })
  const type = 'application/vnd.scanner.adapter.scan.request+json; version=1.0'
  const headers = { 'content-type': type, accept: 'application/vnd.scanner.adapter.scan.response+json; version=1.0' }
  const answer = await ask(asked, 'scan', { method: 'POST', headers, body }, 30_000)
  if (answer.status < 200 || answer.status > 299) throw toScannerError(answer, 'to the scan request')
  const id = textOf(parseJson(answer.body)?.id)
  if (id === '' || id.length > maxId || !id.isWellFormed() || id.includes('\0')) {
    throw new ScannerError('failed', 'the scanner accepted the scan, but did not return a valid ID')
  }
  return id
}

/**
 * Requests the report of a scan. If the report is not ready, returns the delay in ms until the next request. The delay is 0 if
 * the scanner states none.
 */
export async function fetchReport(
  asked: ScannerAddress,
  id: string,
  type: string,
): Promise<{ body: string } | { waitMs: number }> {
  const request = { method: 'GET', headers: { accept: type } }
  const path = `scan/${encodeURIComponent(id)}/report`
  const answer = await ask(asked, path, request, 120_000, maxReportBytes)
  if (answer.status === 200) return { body: answer.body }
  // The next request has the same path, so the target of the redirect is not needed.
  if (answer.status === 302) return { waitMs: readRetryAfter(answer) }
  if (answer.status === 404) throw new ScannerError('lost', 'the scanner does not know the scan any more')
  throw toScannerError(answer, 'to the request for the report')
}

async function ask(
  { outgoing, url, headers, signal }: ScannerAddress,
  path: string,
  request: Parameters<Outgoing['send']>[1],
  timeoutMs: number,
  maxBytes = maxAnswer,
): Promise<OutgoingAnswer> {
  const all = { ...request, headers: { ...request.headers, ...headers } }
  try {
    return await outgoing.send(`${url}/api/v1/${path}`, all, { timeoutMs, maxBytes, signal })
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error
    const isFaulty = error.reason === 'too-large' || error.reason === 'encoding'
    throw new ScannerError(isFaulty ? 'failed' : 'away', error.message)
  }
}

function toScannerError(answer: OutgoingAnswer, to: string): ScannerError {
  const { status } = answer
  const message = `the scanner responded with HTTP ${status} ${to}`
  if (status === 429 || status === 502 || status === 503 || status === 504) {
    return new ScannerError('away', message, readRetryAfter(answer))
  }
  // A wrong credential affects all images, so this is not an error of the image.
  if (status === 401 || status === 403) return new ScannerError('away', message)
  const isRefusal = status === 400 || status === 413 || status === 415 || status === 422
  return new ScannerError(isRefusal ? 'refused' : 'failed', message)
}

const longestWaitMs = 300_000

/** Delay in ms from the `Retry-After` header in seconds. If the header contains a date, returns 0. */
function readRetryAfter({ headers }: OutgoingAnswer): number {
  const text = headers['refresh-after'] ?? headers['retry-after'] ?? ''
  return /^\d{1,9}$/.test(text) ? Math.min(Number(text) * 1000, longestWaitMs) : 0
}

function parseJson(body: string): Json | undefined {
  try {
    return asObject(JSON.parse(body))
  } catch {
    return undefined
  }
}

const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.map(textOf).filter((text) => text !== '' && text.length <= 256) : []

/** Media type in lower case without spaces. Some scanners add spaces before parameters. */
const plainType = (type: string): string => type.replaceAll(/\s/g, '').toLowerCase()
