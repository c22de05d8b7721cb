// The worker of the deliveries: routes what is written, owns queues and serves them, and takes over those whose owner has
// gone. In this process commits wake it at once; what other nodes write it finds by looking. A server that shares its
// database with nobody looks only when something is due.
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { DutySite } from '#duty.ts'
import { createTrust, watchHeartbeats } from '#lib/heartbeats.ts'
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

/** Resolves once it is at work. */
export async function startDeliveries(app: App, site: DutySite): Promise<Deliveries> {
  const { db, log, config, events } = app
  const { node, url, monotonic } = site
  const leaseMs = config.deliveryTimeoutMs * 2
  const queues = new Map<number, SinkQueue>()
  const ledger = createLedger(app, node)
  const owners = watchHeartbeats<number>(leaseMs, monotonic)
  const trust = createTrust(leaseMs, monotonic)
  const nowText = () => app.clock().toISOString()
  let closing = false
  trust.renewed(monotonic())

  // A send that starts now must be over before another node may take the queue.
  const leaseHolds = () => !db.shared || trust.holds(config.deliveryTimeoutMs)
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

  const routing = coalesced(
    async (begun) => {
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
    },
    site.ran,
    heldUp,
  )

  const looking = coalesced(
    async (begun) => {
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
        } else if (state.owner === '' || owners.stoodStill(state.subscription, state.owner, state.beat)) due.push(state)
      }
      owners.keepOnly(seen)
      await claim(due)
      const next = await queueStore.nextDueTime(db)
      if (next !== undefined) lookAt(next)
    },
    site.ran,
    heldUp,
  )

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
    if (monotonic() + wait >= lookTime) return
    clearTimeout(lookTimer)
    lookTime = monotonic() + wait
    lookTimer = setTimeout(() => {
      lookTime = Infinity
      looking.run()
    }, wait)
    lookTimer.unref()
  }

  /** Without this for the length of a lease, others take what the node owns. */
  const beating = coalesced(
    async (begun) => {
      begun()
      if (queues.size === 0) {
        trust.renewed(monotonic())
        return
      }
      const before = [...queues.values()]
      const sent = monotonic()
      const owned = await db.tx((tx) => queueStore.beat(tx, node), rowLocks)
      trust.renewed(sent)
      const still = new Set(owned.map(({ subscription }) => subscription))
      for (const queue of before) {
        if (!still.has(queue.subscription)) queue.drop()
        else queue.pump()
      }
    },
    site.ran,
    heldUp,
  )

  function heldUp(error: unknown): void {
    if (closing) return
    site.failed(error)
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
      await Promise.all([routing.idle(), looking.idle(), beating.idle()])
      const until = monotonic() + config.drainMs
      const busy = () => [...queues.values()].some((queue) => queue.inFlight > 0)
      while (busy() && monotonic() < until) await sleep(5)
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
function coalesced(work: (begun: () => void) => Promise<void>, onEnd: () => void, onError: (error: unknown) => void) {
  let running: Promise<void> | undefined
  let again = false
  const begun = (): void => {
    again = false
  }
  const runAll = async (): Promise<void> => {
    do {
      again = false
      await work(begun).then(onEnd, onError)
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
