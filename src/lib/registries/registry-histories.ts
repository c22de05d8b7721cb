// Reader of tag histories of other registries. If one record is wrong, the whole answer is rejected.
import { isDigest } from '../digest.ts'
import type { StreamAnswer } from '../net/outgoing-streams.ts'
import { parseTimestamp, toIso } from '../timestamp.ts'
import { nextPage } from './links.ts'
import { UpstreamError } from './upstream-error.ts'

/** `service` is `_svc/history`, as ours; `draft` is pull request 606 of the distribution specification. */
export type HistoryApi = 'service' | 'draft'

/** Times are ISO texts. `checkedBefore` is set if the upstream itself only knows that the tag moved after it. */
export type ReportedMove = { time: string; digest: string; isDeletion: boolean; checkedBefore: string }

/** Oldest first, without two of one time. `next` asks for the next page, where there is one. */
export type HistoryPage = { moves: ReportedMove[]; next: string | undefined }

/** Path of the first page of the history after a time; of the whole history if `after` is empty. */
export function firstPageOf(api: HistoryApi, tag: string, after: string): string {
  if (api === 'service') return servicePath(tag, after)
  const query = new URLSearchParams({ n: String(pageOfDraft), ...(after !== '' && { since: after }) })
  return `_oci/tag-history/${tag}?${query}`
}

const pageOfService = 1000
const pageOfDraft = 1000
/** The most records of a page, whatever was requested. */
const mostRecords = 10_000
/** By how much the clock of a teller may be ahead of ours. */
const aheadMs = 60_000

function servicePath(tag: string, after: string): string {
  // The start of a window is part of it.
  const start = after === '' ? '' : `?${new URLSearchParams({ start: plusOne(after) })}`
  return `_svc/history/${tag}${start}`
}

const plusOne = (iso: string): string => new Date(Date.parse(iso) + 1).toISOString()

type Read = { tag: string; after: string; now: number }

/** Returns `undefined` for a registry without a history of this tag. */
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
  // A page that also has known moves has all new ones, so older pages are not requested.
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
    // The answer has the form of none of these registries.
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

/** Keeps the later one of two moves within a millisecond. */
function dropEarlier(moves: readonly ReportedMove[]): ReportedMove[] {
  return moves.filter(({ time }, i) => time !== moves[i + 1]?.time)
}
