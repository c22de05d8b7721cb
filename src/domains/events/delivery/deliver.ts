// The worker of the deliveries: routes what is written, owns queues and serves them, and takes over those whose owner has
// gone. In this process commits wake it at once; what other nodes write it finds by looking. A server that shares its
// database with nobody looks only when something is due.
import { randomBytes } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import { startSweeps } from '../outbox/retention.ts'
import * as queueStore from './queues.store.ts'
import { createLedger } from './results.ts'
import { anyUnrouted } from './routing.store.ts'
import { route, routeBatch } from './routing.ts'
import { SinkQueue, type SinkQueueDeps } from './sink-queue.ts'

export type Deliveries = {
  /** Starts nothing more, waits for what is on its way for as long as the configuration says, and hands over the rest. */
  close(): Promise<void>
}

/** How often a node looks for the work of others: while it has queues, and while it has none. */
const busyLookMs = 100
const idleLookMs = 1000
const retryMs = 1000
/** A timer cannot wait longer; by then it looks once for nothing. */
const longestTimer = 2 ** 31 - 1
/** How many queues a node takes on by itself; the rest is for others. */
const maxOwned = 1000

const rowLocks = { isolation: 'rowLocks' } as const
/** What a power cut undoes is routed again. */
const routes = { isolation: 'rowLocks', durability: 'later' } as const

/** `url` is what clients call us. Resolves once it is at work. */
export async function startDeliveries(app: App, url: string): Promise<Deliveries> {
  const { db, log, config, events } = app
  const node = randomBytes(8).toString('hex')
  const leaseMs = config.deliveryTimeoutMs * 2
  const queues = new Map<number, SinkQueue>()
  const ledger = createLedger(app, node)
  const watched = new Map<number, { owner: string; beat: number; since: number }>()
  const nowText = () => app.clock().toISOString()
  let closing = false
  let leaseUntil = performance.now() + leaseMs

  // A send that starts now must be over before another node may take the queue.
  const leaseHolds = () => !db.shared || performance.now() + config.deliveryTimeoutMs < leaseUntil
  const deps: SinkQueueDeps = {
    app,
    url,
    node,
    ledger,
    maySend: () => !closing && leaseHolds(),
    limit({ sink }) {
      const sharing = sink === '' ? 1 : [...queues.values()].filter((queue) => queue.sink === sink).length
      return Math.max(1, Math.floor(config.deliveriesInFlight / Math.max(1, sharing)))
    },
    onEnd(queue, next) {
      queues.delete(queue.subscription)
      if (next === 'unknown') looking.run()
      else if (next.dueTime !== undefined) lookAt(next.dueTime)
    },
  }

  const open = (state: queueStore.OwnedQueue): void => {
    const known = queues.get(state.subscription)
    if (known) {
      known.note(state)
      return
    }
    const queue = new SinkQueue(deps, state)
    queues.set(state.subscription, queue)
    queue.pump()
  }

  const routing = coalesced(async (begun) => {
    const taker = () => (queues.size < maxOwned && !closing ? node : '')
    for (;;) {
      const work = db.tx((tx) => {
        begun()
        return route(tx, nowText(), taker())
      }, routes)
      const { events: routed, queues: mine } = await work
      for (const state of mine) open(state)
      if (routed > 0) events.routed.notify()
      if (routed < routeBatch || closing) return
    }
  }, heldUp)

  const looking = coalesced(async (begun) => {
    begun()
    if (closing) return
    if (db.shared && (await anyUnrouted(db))) routing.run()
    const due: queueStore.QueueState[] = []
    const seen = new Set<number>()
    for (const state of await queueStore.openQueues(db, nowText())) {
      seen.add(state.subscription)
      const mine = queues.get(state.subscription)
      if (state.owner === node) {
        if (mine?.generation !== state.generation) open(state)
      } else if (state.owner === '' || hasStoodStill(state)) due.push(state)
    }
    for (const subscription of watched.keys()) if (!seen.has(subscription)) watched.delete(subscription)
    await claim(due)
    const next = await queueStore.nextDueTime(db)
    if (next !== undefined) lookAt(next)
  }, heldUp)

  function hasStoodStill({ subscription, owner, beat }: queueStore.QueueState): boolean {
    const known = watched.get(subscription)
    if (known?.owner === owner && known.beat === beat) return performance.now() - known.since >= leaseMs
    watched.set(subscription, { owner, beat, since: performance.now() })
    return false
  }

  async function claim(due: readonly queueStore.QueueState[]): Promise<void> {
    const some = due.slice(0, Math.max(0, maxOwned - queues.size))
    if (some.length === 0) return
    const claimed = await db.tx(async (tx) => {
      const won: queueStore.OwnedQueue[] = []
      for (const state of some) {
        const mine = await queueStore.claimQueue(tx, state, node)
        if (mine) won.push(mine)
      }
      return won
    }, rowLocks)
    for (const state of claimed) open(state)
  }

  let lookTimer: NodeJS.Timeout | undefined
  let lookTime = Infinity
  function lookAt(time: string): void {
    const at = time === '' ? 0 : Date.parse(time)
    const wait = Math.min(Math.max(at - app.clock().getTime(), 1), longestTimer)
    if (performance.now() + wait >= lookTime) return
    clearTimeout(lookTimer)
    lookTime = performance.now() + wait
    lookTimer = setTimeout(() => {
      lookTime = Infinity
      looking.run()
    }, wait)
    lookTimer.unref()
  }

  /** Without this for the length of a lease, others take what the node owns. */
  const beating = coalesced(async (begun) => {
    begun()
    if (queues.size === 0) {
      leaseUntil = performance.now() + leaseMs
      return
    }
    const before = [...queues.values()]
    const began = performance.now()
    const owned = await db.tx((tx) => queueStore.beat(tx, node), rowLocks)
    leaseUntil = began + leaseMs
    const still = new Set(owned.map(({ subscription }) => subscription))
    for (const queue of before) {
      if (!still.has(queue.subscription)) queue.drop()
      else queue.pump()
    }
  }, heldUp)

  function heldUp(error: unknown): void {
    if (closing) return
    log.error('deliveries are held up', { error })
    const again = () => {
      routing.run()
      looking.run()
    }
    if (!closing) setTimeout(again, retryMs).unref()
  }

  const timers = db.shared ? [setInterval(() => beating.run(), leaseMs / 4), startLooking()] : []
  function startLooking(): NodeJS.Timeout {
    let sinceLook = 0
    return setInterval(() => {
      sinceLook += busyLookMs
      if (queues.size === 0 && sinceLook < idleLookMs) return
      sinceLook = 0
      looking.run()
    }, busyLookMs)
  }
  for (const timer of timers) timer.unref()

  const listening = [events.written.subscribe(() => routing.run()), events.queued.subscribe(() => looking.run())]
  const sweeps = startSweeps(app)
  if (!db.shared) await db.tx((tx) => queueStore.freeAllQueues(tx), rowLocks)
  routing.run()
  looking.run()
  log.debug('delivering', { node })

  return {
    async close() {
      closing = true
      for (const stop of listening) stop()
      for (const timer of timers) clearInterval(timer)
      clearTimeout(lookTimer)
      await Promise.all([routing.idle(), looking.idle(), beating.idle(), sweeps.close()])
      const until = performance.now() + config.drainMs
      const busy = () => [...queues.values()].some((queue) => queue.inFlight > 0)
      while (busy() && performance.now() < until) await sleep(5)
      await ledger.close()
      for (const queue of queues.values()) queue.stop()
      await db
        .tx((tx) => queueStore.freeQueuesOf(tx, node), rowLocks)
        .catch((error: unknown) => {
          log.warn('deliveries could not be handed over', { error })
        })
    },
  }
}

/**
 * Runs one at a time. Asked again while it runs, it runs once more afterwards, unless the work has not said `begun` yet:
 * then it will see what it was asked for.
 */
function coalesced(work: (begun: () => void) => Promise<void>, onError: (error: unknown) => void) {
  let running: Promise<void> | undefined
  let again = false
  const begun = (): void => {
    again = false
  }
  const runAll = async (): Promise<void> => {
    do {
      again = false
      await work(begun).catch(onError)
    } while (again)
    running = undefined
  }
  return {
    run(): void {
      if (running) again = true
      else running = runAll()
    },
    idle: async (): Promise<void> => running,
  }
}
