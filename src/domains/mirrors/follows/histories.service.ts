// Requests the history of mirrored tags from upstreams that serve it. Upstream history is stored apart from our own tag history,
// which has only assignments that this server observed.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Tx } from '#db/sql.ts'
import { inRepo } from '#domains/registry/blobs/blobs.store.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import * as told from '#domains/registry/tags/upstream-history.store.ts'
import { chunks } from '#lib/chunks.ts'
import type { Upstream as Asked } from '#lib/registries/registry-client.ts'
import type { HistoryApi, HistoryPage, ReportedMove } from '#lib/registries/registry-histories.ts'
import { UpstreamError, type UpstreamReason } from '#lib/registries/upstream-error.ts'
import { type FollowStatus, historyApis, maxReported, maxReportedOfTag } from './follows.model.ts'
import { findFollowWithoutCounts } from './follows.store.ts'
import * as store from './histories.store.ts'
import { FollowEnded, requireFollow } from './upstream-moves.service.ts'
import { withPassword } from './upstreams.service.ts'
import { findUpstream } from './upstreams.store.ts'

export type HistoryWork = { app: App; lease: Lease; asking: store.QueuedHistoryRequest }
/** Result of a request. `waitsFor` is the upstream whose rate limit was reached, or empty. */
export type HistoryResult = { told: number; failed: number; waitsFor: string }

const hourMs = 3_600_000
const firstRetryMs = 60_000
/** Delay after an invalid history, and after an upstream that serves no history. */
const restMs = 24 * hourMs
/**
 * Number of failures after which a tag is tried only once a day. The same number applies to a repository that never got a
 * history.
 */
const mostTries = 5
/** Longest wait of a request for the rate limit of the host. */
const patienceMs = 1_000
/** Longest wait between the pages of a draft history. It is longer, since a draft history is used only if it is complete. */
const patienceOfDraftMs = 15_000
/** Most pages of one tag that are read before other tags are served. */
const mostPages = 10
const rowsAtOnce = 500

/** Requests the history of one tag and schedules the next request. Throws only if the lease is lost or the database fails. */
export async function requestHistory(one: HistoryWork): Promise<HistoryResult> {
  const { app, lease, asking } = one
  const follow = await findFollowWithoutCounts(app.db, asking.repo)
  try {
    return follow ? await askOrFail(one, follow) : await end(one)
  } catch (error) {
    if (lease.holds() && error instanceof FollowEnded) return nothing
    throw error
  }
}

const nothing: HistoryResult = { told: 0, failed: 0, waitsFor: '' }
const write = { isolation: 'rowLocks', durability: 'later' } as const

async function askOrFail(one: HistoryWork, follow: FollowStatus): Promise<HistoryResult> {
  try {
    const way = await wayOf(one.app, follow)
    return way ? await askFor(one, way) : await end(one)
  } catch (error) {
    if (!one.lease.holds() || error instanceof FollowEnded) throw error
    return noteFailure(one, follow, error)
  }
}

async function end({ lease, asking }: HistoryWork): Promise<HistoryResult> {
  await lease.tx((tx) => store.endRequest(tx, asking), write)
  return nothing
}

/**
 * Runs a change in a transaction if the configuration of the mirror is unchanged. Otherwise throws FollowEnded, since the answer
 * came from the former upstream.
 */
function note({ lease }: HistoryWork, follow: FollowStatus, change: (tx: Tx) => Promise<void>): Promise<void> {
  return lease.tx(async (tx) => {
    await requireFollow(tx, follow)
    await change(tx)
  }, write)
}

type Way = { follow: FollowStatus; upstream: Asked; path: string; teller: told.HistorySource }

async function wayOf(app: App, follow: FollowStatus): Promise<Way | undefined> {
  const row = await findRepoRow(app.db, { uid: follow.repo })
  const known = await findUpstream(app.db, follow.upstream)
  if (!row || !known) return undefined
  const { upstream, path } = await withPassword(app, known, follow.path)
  const teller = { ledger: row.ledger, upstream: follow.upstream, origin: upstream.origin, path }
  // History is not urgent, so it uses only requests that the rate limit has to spare.
  return { follow, upstream: { ...upstream, spare: true }, path, teller }
}

async function askFor(one: HistoryWork, way: Way): Promise<HistoryResult> {
  const { app, lease, asking } = one
  const { follow, teller } = way
  const last = await told.findLastReported(app.db, teller, asking.tag)
  const after = last?.time ?? ''
  const found = await firstPage(one, way, after)
  if (!found) {
    await note(one, follow, (tx) => store.noteHistoryApi(tx, asking.repo, restUntil(app, historyApis.none, '')))
    return nothing
  }
  const { api, page } = found
  const { moves, isAll, waits } = page ? await restOf(one, way, { api, page, after }) : noMoves
  const room = Math.min(
    maxReported - (await told.countReported(app.db, teller.ledger)),
    maxReportedOfTag - (await told.countOfTag(app.db, teller.ledger, asking.tag)),
  )
  const now = isoOf(app)
  let sum = 0
  for (const some of chunks(moves.slice(0, Math.max(room, 0)), rowsAtOnce)) {
    sum += await lease.tx(async (tx) => {
      await requireFollow(tx, follow)
      return told.addReported(tx, teller, asking.tag, some, now)
    }, inRepo)
  }
  const isFull = moves.length > room
  await note(one, follow, async (tx) => {
    if (follow.historyApi !== api) {
      await store.noteHistoryApi(tx, asking.repo, { api, due: '', problem: '' })
    }
    if (isFull) await store.noteRequest(tx, asking, rest(app, asking, tooMuch))
    else if (isAll) await store.endRequest(tx, asking)
    else await store.noteRequest(tx, asking, { failures: 0, problem: '', dueTime: isoOf(app) })
  })
  return { told: sum, failed: 0, waitsFor: waits ? follow.upstream : '' }
}

const tooMuch = `only ${maxReportedOfTag} updates of a tag and ${maxReported} of a repository are imported from an upstream`

type Api = Exclude<(typeof historyApis)[keyof typeof historyApis], 0 | 3>
const ways: Record<Api, HistoryApi> = { [historyApis.service]: 'service', [historyApis.draft]: 'draft' }

/**
 * First page of a history. Asks the API that the upstream is known to have, or each API until one answers. Returns undefined if
 * the upstream serves no history.
 */
async function firstPage(one: HistoryWork, way: Way, after: string) {
  const { historyApi } = way.follow
  const { service, draft } = historyApis
  const known = historyApi === service || historyApi === draft ? historyApi : undefined
  let refusal: UpstreamError | undefined
  for (const api of known === draft ? ([draft, service] as const) : ([service, draft] as const)) {
    try {
      const page = await ask(one, way, { api, after })
      // If the known API has served this tag before, it would still have the tag. Otherwise the other API is asked too.
      if (page || (api === known && after !== '')) return { api, page }
    } catch (error) {
      if (api === known || !(error instanceof UpstreamError && isRefusal(error.reason))) throw error
      refusal ??= error
    }
  }
  if (known) return { api: known, page: undefined }
  if (refusal) throw refusal
  return undefined
}

const refusals: readonly UpstreamReason[] = ['malformed', 'unauthorized', 'forbidden']
const isRefusal = (reason: UpstreamReason): boolean => refusals.includes(reason)

type Page = { api: Api; after: string; page?: string; patience?: number }

function ask({ app, lease, asking }: HistoryWork, way: Way, { api, after, page, patience = patienceMs }: Page) {
  const asked = { api: ways[api], tag: asking.tag, after, page }
  return app.upstreams.history(way.upstream, way.path, asked, { patienceMs: patience, signal: lease.signal })
}

type Pages = { api: Api; page: HistoryPage; after: string }
type Moves = { moves: ReportedMove[]; isAll: boolean; waits: boolean }
const noMoves: Moves = { moves: [], isAll: true, waits: false }

/**
 * Assignments from the oldest on, as many as could be read. The draft API begins with the newest, so a draft history is used
 * completely or not at all.
 */
async function restOf(one: HistoryWork, way: Way, { api, page: first, after }: Pages): Promise<Moves> {
  if (api === historyApis.draft) return allOfDraft(one, way, first, after)
  const { moves } = first
  let { next } = first
  for (let pages = 1; next !== undefined && pages < mostPages; pages++) {
    try {
      const page = await ask(one, way, { api, after: moves.at(-1)!.time, page: next })
      moves.push(...(page?.moves ?? []))
      next = page && page.moves.length > 0 ? page.next : undefined
    } catch (error) {
      if (!isWait(error)) throw error
      return { moves, isAll: false, waits: true }
    }
  }
  return { moves, isAll: next === undefined, waits: false }
}

async function allOfDraft(one: HistoryWork, way: Way, first: HistoryPage, after: string): Promise<Moves> {
  const api = historyApis.draft
  const pages = [first]
  let { next } = first
  while (next !== undefined && pages.length < mostPages) {
    const page = await ask(one, way, { api, after, page: next, patience: patienceOfDraftMs })
    // Assignments of each page must be older than those of the page before.
    const newest = page?.moves.at(-1)
    if (newest && newest.time >= pages.at(-1)!.moves[0]!.time) throw new UpstreamError('malformed')
    next = newest && page?.next
    if (page) pages.push(page)
  }
  if (next !== undefined) throw new UpstreamError('too-large')
  return { ...noMoves, moves: pages.toReversed().flatMap(({ moves }) => moves) }
}

/** True if the request only has to wait for the rate limit of the host. */
const isWait = (error: unknown): boolean =>
  error instanceof UpstreamError && (error.reason === 'paced' || error.reason === 'paused')

async function noteFailure(one: HistoryWork, follow: FollowStatus, error: unknown): Promise<HistoryResult> {
  const { app, asking } = one
  if (isWait(error)) return { ...nothing, waitsFor: follow.upstream }
  const isTheirs = error instanceof UpstreamError
  // An internal error is recorded as a failure too, so that other tags are not delayed.
  if (!isTheirs) app.log.error('tag history could not be read from an upstream', { repo: asking.repo, error })
  const { reason, message, waitMs = 0 } = isTheirs ? error : new UpstreamError('unavailable')
  const isUnknown = follow.historyApi === historyApis.unknown || follow.historyApi === historyApis.none
  // If an upstream refuses one tag, it serves no history at all. So does an upstream with invalid answers that never served a
  // history.
  const isNone = reason === 'malformed' ? isUnknown : isRefusal(reason) || reason === 'not-allowed'
  const isPassing = reason === 'throttled' || reason === 'unavailable'
  const failures = asking.failures + 1
  const retryMs = Math.min(firstRetryMs * 2 ** Math.min(asking.failures, 10), hourMs)
  const rests = !isPassing || failures >= mostTries
  const dueTime = later(app, Math.max(waitMs, rests ? restMs : retryMs))
  await note(one, follow, async (tx) => {
    if (isNone) return store.noteHistoryApi(tx, asking.repo, restUntil(app, historyApis.none, message))
    await store.noteRequest(tx, asking, { failures, problem: message, dueTime })
    const triesAll = isUnknown && isPassing && (await store.failuresOf(tx, asking.repo)) >= mostTries
    if (triesAll) await store.delayRequests(tx, asking.repo, later(app, restMs))
  })
  return { ...nothing, failed: 1 }
}

const isoOf = ({ clock }: App): string => clock().toISOString()
const later = ({ clock }: App, ms: number): string => new Date(clock().getTime() + ms).toISOString()
const restUntil = (app: App, api: number, problem: string) => ({ api, due: later(app, restMs), problem })
const rest = (app: App, { failures }: store.QueuedHistoryRequest, problem: string) => ({
  failures: failures + 1,
  problem,
  dueTime: later(app, restMs),
})
