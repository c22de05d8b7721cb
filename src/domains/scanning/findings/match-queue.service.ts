// Processes the queue of comparisons. Scopes take turns, and slices are so short that other requests are not delayed.

import { setImmediate } from 'node:timers/promises'
import type { App } from '#app.ts'
import { bringInLists } from '../lists/backfill.service.ts'
import { listStates } from '../lists/lists.model.ts'
import * as limits from '../lists/lists.store.ts'
import { findListByNo, noteListMatched, unmatchedOf } from '../lists/lists.store.ts'
import { openOwnSource, takeAdvisory } from '../own-advisories/own-advisories.service.ts'
import { type DueMatch, readCountsItem, readPackageItem } from '../queue/queue.model.ts'
import * as queue from '../queue/queue.store.ts'
import { componentsNamed } from './findings.store.ts'
import { countList, countPackages, spreadPage } from './open-findings.service.ts'
import {
  createSliceSize,
  end,
  type ItemInProgress,
  later,
  matchAll,
  pause,
  suppressAll,
} from './queue-items.service.ts'
import { type PairCursor, pairsOfList, pairsTouching } from './suppressions.store.ts'

export type MatchClaimer = { node: string; isGone(node: string): boolean; after: string | undefined }

/** Time in ms after which an item is paused, so that the next item of the queue is processed. */
const turnMs = 1000

/**
 * Claims an item that is due, or an item that a stopped server had claimed. Returns undefined if there is no such item. Scopes
 * take turns.
 */
export async function claimMatch(app: App, { node, isGone, after }: MatchClaimer): Promise<DueMatch | undefined> {
  for (;;) {
    const left = (await queue.ownedMatches(app.db)).find(({ owner }) => owner === node || isGone(owner))
    const next = left ?? (await nextDue(app, after))
    if (!next) return undefined
    const claimed = await app.db.tx((tx) => queue.claimMatch(tx, next, node), { isolation: 'rowLocks', ...later })
    if (claimed) return claimed
  }
}

/** The first due item of the next scope after `after`. After the last scope, the first one follows. */
async function nextDue({ db, clock }: App, after: string | undefined): Promise<DueMatch | undefined> {
  const now = clock().toISOString()
  for (const [from, to] of after === undefined
    ? [[undefined, undefined] as const]
    : [[after, undefined] as const, [undefined, after] as const]) {
    for (let last: string | undefined = from; ; ) {
      const next = await queue.nextMatch(db, last)
      if (!next || (to !== undefined && next.organization > to)) break
      if (next.dueTime <= now) return next
      last = next.organization
    }
  }
  return undefined
}

/** Processes an item. Throws if the item must be tried again. */
export async function processMatch(app: App, item: DueMatch, signal: AbortSignal): Promise<void> {
  const began = performance.now()
  const work = { app, item, signal, pace: createSliceSize(), isLate: () => performance.now() - began > turnMs }
  await processors[item.kind](work)
}

export async function postponeMatch(app: App, item: DueMatch, ms: number): Promise<void> {
  const dueTime = new Date(app.clock().getTime() + ms).toISOString()
  await app.db.tx((tx) => queue.requeueMatch(tx, item, dueTime))
}

const processors: Record<DueMatch['kind'], (doing: ItemInProgress) => Promise<void>> = {
  package: processPackage,
  list: processList,
  counts: processCounts,

  async advisory({ app, item }) {
    const sourceNo = await openOwnSource(app)
    await app.db.tx(async (tx) => {
      await takeAdvisory(app, tx, sourceNo, item.item)
      await queue.endMatch(tx, item)
    }, later)
  },

  async backfill(doing) {
    const { app, item } = doing
    const last = await bringInLists(app, item.item, doing.signal)
    await app.db.tx(async (tx) => {
      // The next server that claims the item continues after the last list.
      if ((await queue.endMatch(tx, item)) && last !== undefined) {
        await queue.queueMatches(tx, [{ ...item, item: last }], app.clock().toISOString())
      }
    }, later)
  },
}

/**
 * Number of turns in which one list can reach its findings limit. Lists are counted between turns, so a list is put on hold
 * before it exceeds the limit by much. Only the last slice of a turn can add more than one share.
 */
const turnsOfList = 5
const touchedAtOnce = 256

/**
 * Progress of an item. Components up to `after` are done. Components up to `upTo` are compared with advisory entries up to `row`.
 * Then their suppressions are updated for pairs up to `pair`.
 */
type Progress = { after: number; upTo: number; row: number; pair: PairCursor | undefined }

const start: Progress = { after: 0, upTo: Number.MAX_SAFE_INTEGER, row: 0, pair: undefined }

async function processPackage(doing: ItemInProgress): Promise<void> {
  const { app, item } = doing
  const { name } = readPackageItem(item.item)
  const turn: Turn = { added: 0, most: app.config.vulnerabilityFindingsPerImage / turnsOfList }
  for (let at = item.progress === '' ? start : (JSON.parse(item.progress) as Progress); ; ) {
    const most = at.upTo === start.upTo ? doing.pace.size : mostInProgress
    const components = await componentsNamed(app.db, name, { after: at.after, upTo: at.upTo, most })
    const last = components.at(-1)
    if (!last) break
    at = await compareSome(doing, turn, { ...at, upTo: last.componentNo }, components)
    if (doing.isLate() || turn.added > turn.most) return pause(doing, JSON.stringify(at))
  }
  await end(doing)
}

/** Limit on components that are in progress together, so that their comparison fits into one slice. */
const mostInProgress = 64

type Turn = { added: number; most: number }

/** Compares the components and then updates their suppressions, until the turn ends. */
async function compareSome(
  doing: ItemInProgress,
  turn: Turn,
  at: Progress,
  components: Parameters<typeof matchAll>[1],
): Promise<Progress> {
  if (!at.pair) {
    const isEnough = ({ added }: { added: number }) => doing.isLate() || turn.added + added > turn.most
    const { added, next } = await matchAll(doing, components, { after: at.row, isEnough })
    turn.added += added
    if (next !== undefined) return { ...at, row: next }
  }
  const numbers = components.map(({ componentNo }) => componentNo)
  for (let pair = at.pair; ; ) {
    const page = await pairsTouching(doing.app.db, numbers, { after: pair, most: touchedAtOnce })
    await suppressAll(doing, page.pairs)
    if (!page.next) return { ...start, after: at.upTo }
    pair = page.next
    if (doing.isLate()) return { ...at, pair }
  }
}

const componentsAtOnce = 64
const heldAtOnce = 200
const pairsAtOnce = 500

async function processList(doing: ItemInProgress): Promise<void> {
  const { app, item } = doing
  const listNo = Number(item.item)
  const list = await findListByNo(app.db, listNo)
  if (!list || list.state === listStates.gone) return end(doing)
  if (!list.isOver) {
    await holdOrRelease(doing, listNo, false)
    const outcome = await compare(doing, listNo)
    if (outcome === 'late') return pause(doing)
    if (outcome === 'over') {
      await app.db.tx((tx) => limits.setOver(tx, listNo, app.clock().toISOString()), later)
      await holdOrRelease(doing, listNo, true)
    }
  } else await holdOrRelease(doing, listNo, true)
  for (let after = Number(item.progress || '0'); ; ) {
    const pairs = await pairsOfList(app.db, listNo, { after, most: pairsAtOnce })
    const last = pairs.at(-1)
    if (!last) break
    after = last.componentNo
    await suppressAll(doing, pairs)
    if (doing.isLate()) return pause(doing, String(after))
  }
  await countWholeList(doing, listNo)
}

/**
 * Adds a change of the findings in a package to the counts of all lists with the package. Or counts the findings of one list
 * completely.
 */
async function processCounts(doing: ItemInProgress): Promise<void> {
  const what = readCountsItem(doing.item.item)
  return 'listNo' in what ? countWholeList(doing, what.listNo) : updateListsOf(doing, what.componentNo)
}

/** Counts the findings of the list once. Later changes of packages are added to this count. */
async function countWholeList(doing: ItemInProgress, listNo: number): Promise<void> {
  const { app, item } = doing
  await countPackages(doing, listNo)
  await app.db.tx(async (tx) => {
    const list = await findListByNo(tx, listNo)
    if (list && list.state !== listStates.gone) {
      await countList(tx, doing, listNo)
      if (item.kind === 'list') await noteListMatched(tx, listNo, app.clock().toISOString())
    }
    await queue.endMatch(tx, item)
  }, later)
}

async function updateListsOf(doing: ItemInProgress, componentNo: number): Promise<void> {
  const { app, item, signal } = doing
  for (;;) {
    signal.throwIfAborted()
    const isDone = await app.db.tx(async (tx) => {
      if (await spreadPage(tx, doing, componentNo)) return false
      await queue.endMatch(tx, item)
      return true
    }, later)
    if (isDone) return
    await setImmediate()
    if (doing.isLate()) return pause(doing, '', item.dueTime)
  }
}

/** Puts the packages of a list on hold if the list is over its limit. Releases the packages if the list is within its limit. */
async function holdOrRelease({ app, signal }: ItemInProgress, listNo: number, isOver: boolean): Promise<void> {
  for (let after = 0; ; ) {
    signal.throwIfAborted()
    const page = { after, most: heldAtOnce }
    const wrong = await limits.packagesWithWrongHold(app.db, listNo, isOver, page)
    const last = wrong.at(-1)
    if (last === undefined) return
    after = last
    await app.db.tx((tx) => (isOver ? limits.hold : limits.release)(tx, listNo, wrong), later)
    await setImmediate()
  }
}

/**
 * Compares the packages of a list that were never compared. Progress is stored with the packages, so another server can continue
 * the work.
 */
async function compare(doing: ItemInProgress, listNo: number): Promise<'all' | 'late' | 'over'> {
  const most = doing.app.config.vulnerabilityFindingsPerImage
  let open = await countOpen(doing, listNo)
  for (;;) {
    if (open > most) return 'over'
    const components = await unmatchedOf(doing.app.db, listNo, doing.pace.size)
    if (components.length === 0) return 'all'
    const before = open
    const { addedForAll } = await matchAll(doing, components, {
      isEnough: (so) => before + so.addedForAll > most,
    })
    open += addedForAll
    if (doing.isLate() && open <= most) return 'late'
  }
}

async function countOpen({ app, signal }: ItemInProgress, listNo: number): Promise<number> {
  let total = 0
  for (let after: number | undefined = 0; after !== undefined && total <= app.config.vulnerabilityFindingsPerImage; ) {
    signal.throwIfAborted()
    const page: Awaited<ReturnType<typeof limits.countOpen>> = await limits.countOpen(app.db, listNo, {
      after,
      most: componentsAtOnce,
    })
    total += page.open
    after = page.last
    await setImmediate()
  }
  return total
}
