// Asks upstreams for the past of the tags that are followed there, where they tell of it. What they say is theirs: it is kept apart
// from the ledger, which has what was seen from here.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import { chunks } from '#lib/chunks.ts'
import type { Upstream as Asked } from '#lib/registries/registry-client.ts'
import type { HistoryApi, HistoryPage } from '#lib/registries/registry-histories.ts'
import { UpstreamError } from '#lib/registries/upstream-error.ts'
import { inRepo } from '../blobs/blobs.store.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import * as told from '../tags/told-moves.store.ts'
import { type FollowStatus, historyApis, maxTold, maxToldOfTag } from './follows.model.ts'
import { findFollowAlone } from './follows.store.ts'
import * as store from './histories.store.ts'
import { FollowEnded, requireFollow } from './upstream-moves.service.ts'
import { askedFor } from './upstreams.service.ts'
import { findUpstream } from './upstreams.store.ts'

export type AskingOne = { app: App; lease: Lease; asking: store.Asking }
export type AskedOne = { told: number; failed: number }

const hourMs = 3_600_000
const firstRetryMs = 60_000
/** When an upstream is asked again that tells nothing, or a tag of which it tells what cannot be. */
const restMs = 24 * hourMs
/** How often a tag is tried that others would not fare better than, before it rests. */
const mostTries = 5
/** How long the turn of the host is waited for. */
const patienceMs = 1_000
/** How many pages are read of one tag before others have their turn. */
const mostPages = 10
const rowsAtOnce = 500

/** Asks for the past of one tag, and notes when to go on. Throws only what is nobody's fault but ours. */
export async function askForOne(one: AskingOne): Promise<AskedOne> {
  const { app, lease, asking } = one
  const follow = await findFollowAlone(app.db, asking.repo)
  try {
    const way = follow && (await wayOf(app, follow))
    if (!way) {
      await lease.tx((tx) => store.endAsking(tx, asking), write)
      return { told: 0, failed: 0 }
    }
    return { told: await askFor(one, way), failed: 0 }
  } catch (error) {
    if (!lease.holds()) throw error
    if (error instanceof FollowEnded) return { told: 0, failed: 0 }
    return { told: 0, failed: await noteFailure(one, follow?.historyApi ?? 0, error) }
  }
}

const write = { isolation: 'rowLocks', durability: 'later' } as const

type Way = { follow: FollowStatus; upstream: Asked; path: string; teller: told.Teller }

async function wayOf(app: App, follow: FollowStatus): Promise<Way | undefined> {
  const row = await findRepoRow(app.db, { uid: follow.repo })
  const known = await findUpstream(app.db, follow.upstream)
  if (!row || !known) return undefined
  const { upstream, path } = await askedFor(app, known, follow.path)
  const teller = { ledger: row.ledger, upstream: follow.upstream, origin: upstream.origin, path }
  // Nobody waits for what was: it takes the turns that others leave.
  return { follow, upstream: { ...upstream, spare: true }, path, teller }
}

async function askFor(one: AskingOne, way: Way): Promise<number> {
  const { app, lease, asking } = one
  const { follow, teller } = way
  const last = await told.lastTold(app.db, teller, asking.tag)
  const after = last?.time ?? ''
  const found = await firstPage(one, way, after)
  if (!found) {
    await lease.tx((tx) => store.noteHistoryApi(tx, asking.repo, restUntil(app, historyApis.none, '')), write)
    return 0
  }
  const { api, page } = found
  const { moves, isAll } = page ? await restOf(one, way, { api, page, after }) : { moves: [], isAll: true }
  const room = Math.min(
    maxTold - (await told.countTold(app.db, teller.ledger)),
    maxToldOfTag - (await told.countOfTag(app.db, teller.ledger, asking.tag)),
  )
  const now = isoOf(app)
  let sum = 0
  for (const some of chunks(moves.slice(0, Math.max(room, 0)), rowsAtOnce)) {
    sum += await lease.tx(async (tx) => {
      await requireFollow(tx, follow)
      return told.addTold(tx, teller, asking.tag, some, now)
    }, inRepo)
  }
  const isFull = moves.length > room
  await lease.tx(async (tx) => {
    if (follow.historyApi !== api) {
      await store.noteHistoryApi(tx, asking.repo, { api, due: '', problem: '' })
    }
    if (isFull) await store.noteAsking(tx, asking, rest(app, asking, tooMuch))
    else if (isAll) await store.endAsking(tx, asking)
    else await store.noteAsking(tx, asking, { failures: 0, problem: '', dueTime: isoOf(app) })
  }, write)
  return sum
}

const tooMuch = `it tells of more moves than are kept: ${maxToldOfTag} of a tag, ${maxTold} of a repository`

type Api = Exclude<(typeof historyApis)[keyof typeof historyApis], 0 | 3>
const ways: Record<Api, HistoryApi> = { [historyApis.service]: 'service', [historyApis.draft]: 'draft' }

/** By what it is known to answer with, or by whatever it answers with. `undefined` where it tells nothing at all. */
async function firstPage(one: AskingOne, way: Way, after: string) {
  const { historyApi } = way.follow
  const known = historyApi === historyApis.service || historyApi === historyApis.draft ? historyApi : undefined
  for (const api of known ? [known] : ([historyApis.service, historyApis.draft] as const)) {
    const page = await ask(one, way, api, after)
    // It had this tag a moment ago, so one who tells of tags would tell of it.
    if (page || known) return { api, page }
  }
  return undefined
}

function ask({ app, lease, asking }: AskingOne, way: Way, api: Api, after: string, page?: string) {
  const asked = { api: ways[api], tag: asking.tag, after, page }
  return app.upstreams.history(way.upstream, way.path, asked, { patienceMs, signal: lease.signal })
}

type Pages = { api: Api; page: HistoryPage; after: string }

/** Oldest first. Of a draft, which tells the newest first, all of it or nothing. */
async function restOf(one: AskingOne, way: Way, { api, page: first, after }: Pages) {
  const pages = [first]
  let { next } = first
  while (next !== undefined && pages.length < mostPages) {
    const { moves } = pages.at(-1)!
    const page = await ask(one, way, api, api === historyApis.service ? moves.at(-1)!.time : after, next)
    // Each page of a draft is older than the one before.
    const newest = page?.moves.at(-1)
    if (api === historyApis.draft && newest && newest.time >= moves[0]!.time) throw new UpstreamError('malformed')
    next = newest && page?.next
    if (page) pages.push(page)
  }
  if (api === historyApis.draft && next !== undefined) throw new UpstreamError('too-large')
  const moves = (api === historyApis.draft ? pages.toReversed() : pages).flatMap((page) => page.moves)
  return { moves, isAll: next === undefined }
}

/** 0 where only the turn of the host has to be waited for. */
async function noteFailure({ app, lease, asking }: AskingOne, historyApi: number, error: unknown): Promise<0 | 1> {
  const isTheirs = error instanceof UpstreamError
  // So that it does not keep others waiting.
  if (!isTheirs) app.log.error('the past of a tag could not be asked for', { repo: asking.repo, error })
  const { reason, message, waitMs = 0 } = isTheirs ? error : new UpstreamError('unavailable')
  if (reason === 'paced' || reason === 'paused') {
    const dueTime = later(app, waitMs)
    await lease.tx((tx) => store.noteAsking(tx, asking, { ...asking, problem: '', dueTime }), write)
    return 0
  }
  // Whom it refuses one tag it refuses all, and who has never answered as one that tells of tags is none.
  const isNone = reason === 'malformed' && historyApi === historyApis.unknown
  if (isNone || reason === 'unauthorized' || reason === 'forbidden' || reason === 'not-allowed') {
    const refused = restUntil(app, historyApis.none, message)
    await lease.tx((tx) => store.noteHistoryApi(tx, asking.repo, refused), write)
    return 1
  }
  const isPassing = reason === 'throttled' || reason === 'unavailable'
  const failures = asking.failures + 1
  const retryMs = Math.min(firstRetryMs * 2 ** Math.min(asking.failures, 10), hourMs)
  const rests = !isPassing || failures >= mostTries
  const dueTime = later(app, Math.max(waitMs, rests ? restMs : retryMs))
  await lease.tx((tx) => store.noteAsking(tx, asking, { failures, problem: message, dueTime }), write)
  return 1
}

const isoOf = ({ clock }: App): string => clock().toISOString()
const later = ({ clock }: App, ms: number): string => new Date(clock().getTime() + ms).toISOString()
const restUntil = (app: App, api: number, problem: string) => ({ api, due: later(app, restMs), problem })
const rest = (app: App, { failures }: store.Asking, problem: string) => ({
  failures: failures + 1,
  problem,
  dueTime: later(app, restMs),
})
