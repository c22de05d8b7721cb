// Reader of tag histories of other registries. One wrong record makes the whole response invalid.
import { isDigest } from '../digest.ts'
import type { StreamAnswer } from '../net/outgoing-streams.ts'
import { parseTimestamp, toIso } from '../timestamp.ts'
import { nextPage } from './links.ts'
import { UpstreamError } from './upstream-error.ts'

/**
 * API of the history. `service` is `_svc/history`, which this server has too. `draft` is pull request 606 of the distribution
 * specification.
 */
export type HistoryApi = 'service' | 'draft'

/**
 * Assignment or deletion of a tag at an upstream. Times are ISO text. `checkedBefore` is set if the upstream only knows that the
 * tag was changed between `checkedBefore` and `time`.
 */
export type ReportedMove = { time: string; digest: string; isDeletion: boolean; checkedBefore: string }

/**
 * Moves in order of time, the oldest first, with no two at the same time. `next` is the path of the next page, if there is one.
 */
export type HistoryPage = { moves: ReportedMove[]; next: string | undefined }

/** Path of the first page of the history after a time. If `after` is empty, the path of the whole history. */
export function firstPageOf(api: HistoryApi, tag: string, after: string): string {
  if (api === 'service') return servicePath(tag, after)
  const query = new URLSearchParams({ n: String(pageOfDraft), ...(after !== '' && { since: after }) })
  return `_oci/tag-history/${tag}?${query}`
}

const pageOfService = 1000
const pageOfDraft = 1000
/** Maximum number of records of a page. The registry may send more than were requested. */
const mostRecords = 10_000
/** Milliseconds by which the clock of the other registry may be ahead of ours. */
const aheadMs = 60_000

function servicePath(tag: string, after: string): string {
  // The window includes its start, so the start is one millisecond after `after`.
  const start = after === '' ? '' : `?${new URLSearchParams({ start: plusOne(after) })}`
  return `_svc/history/${tag}${start}`
}

const plusOne = (iso: string): string => new Date(Date.parse(iso) + 1).toISOString()

type Read = { tag: string; after: string; now: number }

/** Reads a page. Returns `undefined` if the registry has no history of this tag. */
export async function readHistory(api: HistoryApi, read: Read, answer: StreamAnswer): Promise<HistoryPage | undefined> {
  if (answer.status === 404) return undefined
  const body = await bodyOf(answer)
  return api === 'service' ? readService(body, read) : readDraft(body, read, String(answer.headers.link ?? ''))
}

function readService(body: Record<string, unknown>, { tag, after, now }: Read): HistoryPage {
  const records = listOf(body.history)
  const listed = records.map(({ updateTimestamp, digest, checkedBefore }): ReportedMove => {
    const time = timeOf(updateTimestamp, now)
    const before = checkedBefore === undefined ? '' : timeOf(checkedBefore, now)
    if (before > time) throw new UpstreamError('malformed')
    return { time, digest: digestOf(digest), isDeletion: false, checkedBefore: before }
  })
  requireOrder(listed)
  const moves = dropEarlier(listed).filter(({ time }) => time > after)
  const last = moves.at(-1)
  return { moves, next: last && records.length >= pageOfService ? servicePath(tag, last.time) : undefined }
}

const annotation = 'org.opencontainers.distribution.tag'

function readDraft(body: Record<string, unknown>, { tag, after, now }: Read, link: string): HistoryPage {
  const listed = listOf(body.manifests).map(({ digest, annotations }): ReportedMove => {
    const values = isObject(annotations) ? annotations : {}
    const event = values[`${annotation}.event`]
    if (event !== 'created' && event !== 'updated' && event !== 'deleted') throw new UpstreamError('malformed')
    const time = timeOf(values[`${annotation}.timestamp`], now)
    return { time, digest: digestOf(digest), isDeletion: event === 'deleted', checkedBefore: '' }
  })
  listed.reverse()
  requireOrder(listed)
  const fresh = listed.filter(({ time }) => time > after)
  // If a page has moves that are already known, all older pages are known too, so they are not requested.
  const isAll = listed.length === 0 || fresh.length < listed.length
  const next = isAll ? undefined : nextPage(link, `_oci/tag-history/${tag}`)
  if (next === 'lost') throw new UpstreamError('lost-page')
  return { moves: dropEarlier(fresh), next }
}

async function bodyOf({ chunks }: StreamAnswer): Promise<Record<string, unknown>> {
  const text = Buffer.concat(await Array.fromAsync(chunks)).toString('utf8')
  try {
    const body = JSON.parse(text) as unknown
    if (isObject(body)) return body
  } catch {
    // The response is not JSON, so it is malformed.
  }
  throw new UpstreamError('malformed')
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function listOf(value: unknown): Record<string, unknown>[] {
  if (!Array.isArray(value) || !value.every(isObject)) throw new UpstreamError('malformed')
  if (value.length > mostRecords) throw new UpstreamError('too-large')
  return value
}

function timeOf(value: unknown, now: number): string {
  const instant = typeof value === 'string' && value.length <= 40 ? parseTimestamp(value) : undefined
  const iso = instant && toIso(instant)
  if (!iso || Date.parse(iso) > now + aheadMs) throw new UpstreamError('malformed')
  return iso
}

function digestOf(value: unknown): string {
  if (typeof value !== 'string' || !isDigest(value)) throw new UpstreamError('malformed')
  return value
}

function requireOrder(moves: readonly ReportedMove[]): void {
  if (moves.some(({ time }, i) => i > 0 && time < moves[i - 1]!.time)) throw new UpstreamError('malformed')
}

/** Removes the earlier of two moves in the same millisecond. */
function dropEarlier(moves: readonly ReportedMove[]): ReportedMove[] {
  return moves.filter(({ time }, i) => time !== moves[i + 1]?.time)
}
