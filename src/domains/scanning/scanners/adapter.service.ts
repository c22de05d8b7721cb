// What is said to a scanner, in the pluggable scanner API of Harbor, 1.0 and 1.1. Whatever it answers, each question ends in
// time, reads no more than it has to, and goes nowhere but to the scanner: no redirect is followed.
import { asObject, type Json, objectsIn, textOf } from '#contents/json.ts'
import { type Outgoing, type OutgoingAnswer, OutgoingError } from '#lib/net/outgoing.ts'
import { maxReportBytes } from '../scan-reports/scan-reports.model.ts'
import { reportTypesAsked } from './scanners.model.ts'

/** A scanner to ask: `headers` prove who asks. */
export type Asked = { outgoing: Outgoing; url: string; headers: Readonly<Record<string, string>>; signal: AbortSignal }

/**
 * `away`: it cannot be reached, or says that it has no time. `lost`: it knows nothing of the scan. `failed`: the scan has
 * failed, or nobody can tell what the answer means. `refused`: it does not take the image.
 */
export type Trouble = 'away' | 'lost' | 'failed' | 'refused'

/** Why a scanner has not done what it was asked for; the message is for those who may see the image. */
export class ScannerError extends Error {
  override name = 'ScannerError'
  readonly trouble: Trouble
  /** How long it wants to be left alone; 0 where it does not say. */
  readonly waitMs: number

  constructor(trouble: Trouble, message: string, waitMs = 0) {
    super(message)
    this.trouble = trouble
    this.waitMs = waitMs
  }
}

/** What a scanner says of itself. */
export type Metadata = { title: string; consumes: string[]; produces: string; buildTime: string }

const maxAnswer = 256 * 1024
const maxId = 512
const updatedAt = 'harbor.scanner-adapter/vulnerability-database-updated-at'

/** Throws ScannerError where it is away, or cannot look for vulnerabilities in a way that is known here. */
export async function readMetadata(asked: Asked): Promise<Metadata> {
  const answer = await ask(asked, 'metadata', { method: 'GET', headers: { accept: 'application/*' } }, 10_000)
  if (answer.status !== 200) throw new ScannerError('away', `it answered ${answer.status} for its metadata`)
  const said = jsonOf(answer.body)
  // What has no type is about vulnerabilities: others came later.
  const able = objectsIn(said?.capabilities).filter(({ type }) => (textOf(type) || 'vulnerability') === 'vulnerability')
  const produced = able.flatMap((one) => textsIn(one.produces_mime_types)).map(plainType)
  const produces = reportTypesAsked.find((type) => produced.includes(plainType(type)))
  if (!said || produces === undefined) throw new ScannerError('away', 'its metadata name no report that is known here')
  const { name, vendor, version } = asObject(said.scanner)
  const title = [textOf(name), textOf(version), vendor ? `by ${textOf(vendor)}` : ''].filter(Boolean).join(' ')
  const built = Date.parse(textOf(asObject(said.properties)[updatedAt]))
  return {
    title: title.replaceAll(/[^\x20-\x7e]/g, '').slice(0, 256),
    consumes: [...new Set(able.flatMap((one) => textsIn(one.consumes_mime_types)))].slice(0, 50),
    produces,
    buildTime: built > 0 && built < Date.UTC(3000, 0) ? new Date(built).toISOString() : '',
  }
}

/** What to look at, and where it is pulled from. */
export type ScanOrder = {
  registryUrl: string
  authorization: string
  repository: string
  digest: string
  mediaType: string
  produces: string
}

/** Begins a scan; answers with what the scanner calls it. */
export async function beginScan(asked: Asked, order: ScanOrder): Promise<string> {
  const { registryUrl: url, authorization, repository, digest, mediaType, produces } = order
  const body = JSON.stringify({
    registry: { url, authorization },
    artifact: { repository, digest, mime_type: mediaType },
    enabled_capabilities: [{ type: 'vulnerability', produces_mime_types: [produces] }],
  })
  const type = 'application/vnd.scanner.adapter.scan.request+json; version=1.0'
  const headers = { 'content-type': type, accept: 'application/vnd.scanner.adapter.scan.response+json; version=1.0' }
  const answer = await ask(asked, 'scan', { method: 'POST', headers, body }, 30_000)
  if (answer.status < 200 || answer.status > 299) throw troubleOf(answer, 'to the order of a scan')
  const id = textOf(jsonOf(answer.body)?.id)
  if (id === '' || id.length > maxId || !id.isWellFormed() || id.includes('\0')) {
    throw new ScannerError('failed', 'it took the scan and said nothing by which to ask for it')
  }
  return id
}

/** The report, or how long to wait until it is asked for again; 0 where the scanner does not say. */
export async function fetchReport(
  asked: Asked,
  id: string,
  type: string,
): Promise<{ body: string } | { waitMs: number }> {
  const request = { method: 'GET', headers: { accept: type } }
  const path = `scan/${encodeURIComponent(id)}/report`
  const answer = await ask(asked, path, request, 120_000, maxReportBytes)
  if (answer.status === 200) return { body: answer.body }
  // Where the redirect leads is of no interest: the report is where it is.
  if (answer.status === 302) return { waitMs: waitOf(answer) }
  if (answer.status === 404) throw new ScannerError('lost', 'it knows nothing of the scan any more')
  throw troubleOf(answer, 'for the report')
}

async function ask(
  { outgoing, url, headers, signal }: Asked,
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

function troubleOf(answer: OutgoingAnswer, to: string): ScannerError {
  const { status } = answer
  const message = `it answered ${status} ${to}`
  if (status === 429 || status === 502 || status === 503 || status === 504) {
    return new ScannerError('away', message, waitOf(answer))
  }
  // It does not want to be asked by us at all: what it is asked for matters nothing.
  if (status === 401 || status === 403) return new ScannerError('away', message)
  const isRefusal = status === 400 || status === 413 || status === 415 || status === 422
  return new ScannerError(isRefusal ? 'refused' : 'failed', message)
}

const longestWaitMs = 300_000

/** Of an adapter that speaks of seconds; one that names a time, as `Retry-After` may, has said nothing. */
function waitOf({ headers }: OutgoingAnswer): number {
  const text = headers['refresh-after'] ?? headers['retry-after'] ?? ''
  return /^\d{1,9}$/.test(text) ? Math.min(Number(text) * 1000, longestWaitMs) : 0
}

function jsonOf(body: string): Json | undefined {
  try {
    return asObject(JSON.parse(body))
  } catch {
    return undefined
  }
}

const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.map(textOf).filter((text) => text !== '' && text.length <= 256) : []

/** Without the spaces that some put between type and parameters. */
const plainType = (type: string): string => type.replaceAll(/\s/g, '').toLowerCase()
