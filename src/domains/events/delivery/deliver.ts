// Worker that sends deliveries. The worker routes new events, owns and serves queues, and takes over the queues of servers that
// have stopped. A commit of this process wakes the worker at once. The worker polls for commits of other servers. If no other
// server shares the database, the worker polls only for due work.
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { JobContext } from '#job.ts'
import { createTrust, type Heartbeats, type Trust, watchHeartbeats } from '#lib/heartbeats.ts'
import * as queueStore from '../routing/queues.store.ts'
import { anyUnrouted } from '../routing/routing.store.ts'
import { route } from '../routing/routing.ts'
import { wakeSubjectQueues } from './backlog.store.ts'
import { type Coalesced, coalesced } from './coalesced.ts'
import { createResults, type Results } from './results.ts'
import { SinkQueue, type SinkQueueDeps } from './sink-queue.ts'

export type Deliveries = {
  /** Stops sending. Waits up to `graceMs` for requests in flight, and then releases the queues. */
  close(graceMs: number): Promise<void>
}

/**
 * Intervals in milliseconds between polls for commits of other servers. The first one applies while the server owns queues, the
 * second one while it owns none.
 */
const busyLookMs = 100
const idleLookMs = 1000
const retryMs = 1000
/**
 * Delay in milliseconds before new events are routed together. Routing several events costs the database as much as routing one
 * event.
 */
const routeMs = 10
/** Longest possible duration of a timer in milliseconds. After this time the worker polls once without a reason. */
const longestTimer = 2 ** 31 - 1
/** Limit on the queues that a server claims. Other servers claim the remaining queues. */
const maxOwned = 1000

const rowLocks = { isolation: 'rowLocks' } as const
/** Transaction options for routing. If a power failure undoes a routing transaction, the events are routed again. */
const routes = { isolation: 'rowLocks', durability: 'later' } as const

/** Resolves once the worker is running. */
export async function startDeliveries(app: App, site: JobContext): Promise<Deliveries> {
  const worker = new DeliveryWorker(app, site)
  await worker.start()
  return worker
}

class DeliveryWorker implements Deliveries {
  readonly #app: App
  readonly #site: JobContext
  readonly #queues = new Map<number, SinkQueue>()
  readonly #results: Results
  readonly #owners: Heartbeats<number>
  readonly #trust: Trust
  readonly #queueDeps: SinkQueueDeps
  readonly #routing: Coalesced
  readonly #looking: Coalesced
  readonly #beating: Coalesced
  readonly #leaseMs: number
  #stops: (() => void)[] = []
  #closing = false
  #lookTimer: NodeJS.Timeout | undefined
  #lookTime = Infinity

  constructor(app: App, site: JobContext) {
    this.#app = app
    this.#site = site
    this.#leaseMs = app.config.deliveryTimeoutMs * 2
    this.#results = createResults(app, site.node)
    this.#owners = watchHeartbeats<number>(this.#leaseMs, site.monotonic)
    this.#trust = createTrust(this.#leaseMs, site.monotonic)
    this.#queueDeps = this.#depsOfQueues()
    const heldUp = (error: unknown) => this.#heldUp(error)
    this.#routing = coalesced((begun) => this.#route(begun), site.ran, heldUp, routeMs)
    this.#looking = coalesced((begun) => this.#look(begun), site.ran, heldUp)
    this.#beating = coalesced(
      (begun) => this.#beat(begun),
      () => {},
      heldUp,
    )
    this.#trust.renewed(site.monotonic())
  }

  async start(): Promise<void> {
    const { db, events, log } = this.#app
    const routing = events.written.subscribe(() => this.#routing.run())
    const looking = events.queued.subscribe(() => this.#looking.run())
    this.#stops = [routing, looking, ...(db.shared ? this.#startTimers() : [])]
    if (!db.shared) await db.tx((tx) => queueStore.freeAllQueues(tx), rowLocks)
    await db.tx((tx) => wakeSubjectQueues(tx), rowLocks)
    this.#routing.run()
    this.#looking.run()
    log.debug('delivering', { node: this.#site.node })
  }

  async close(graceMs: number): Promise<void> {
    const { db, log } = this.#app
    const { monotonic, node } = this.#site
    this.#closing = true
    for (const stop of this.#stops) stop()
    clearTimeout(this.#lookTimer)
    await Promise.all([this.#routing, this.#looking, this.#beating].map(async (work) => work.idle()))
    const until = monotonic() + graceMs
    const busy = () => [...this.#queues.values()].some((queue) => queue.inFlight > 0)
    while (busy() && monotonic() < until) await sleep(5)
    await this.#results.close()
    for (const queue of this.#queues.values()) queue.stop()
    await db
      .tx((tx) => queueStore.freeQueuesOf(tx, node), rowLocks)
      .catch((error: unknown) => {
        log.warn('releasing delivery queues failed', { error })
      })
  }

  #depsOfQueues(): SinkQueueDeps {
    const { db, config } = this.#app
    // Another server may take the queue when the lease expires. So a new request is sent only if it will end before that time.
    const leaseHolds = () => !db.shared || this.#trust.holds(config.deliveryTimeoutMs)
    return {
      app: this.#app,
      url: this.#site.url,
      node: this.#site.node,
      results: this.#results,
      maySend: () => !this.#closing && leaseHolds(),
      limit: (queue) => {
        const others = this.#sharing(queue)
        const taken = others.reduce((sum, { inFlight }) => sum + inFlight, 0)
        const share = Math.max(1, Math.floor(config.deliveriesInFlight / (others.length + 1)))
        return Math.min(share, config.deliveriesInFlight - taken)
      },
      onRoom: (queue) => {
        for (const other of this.#sharing(queue)) if (other.isCrowdedOut) other.pump()
      },
      onEnd: (queue, next) => {
        this.#queues.delete(queue.subscription)
        if (next === 'unknown') this.#looking.run()
        else if (next.dueTime !== undefined) this.#lookAt(next.dueTime)
      },
    }
  }

  /** Other queues of this server with the same sink. */
  #sharing({ subscription, sink }: SinkQueue): SinkQueue[] {
    return [...this.#queues.values()].filter((other) => other.sink === sink && other.subscription !== subscription)
  }

  #serve(state: queueStore.OwnedQueue): void {
    const known = this.#queues.get(state.subscription)
    if (known) {
      known.note(state)
      return
    }
    const queue = new SinkQueue(this.#queueDeps, state)
    this.#queues.set(state.subscription, queue)
    queue.pump()
  }

  async #route(begun: () => void): Promise<void> {
    const { db, events } = this.#app
    const taker = () => (this.#queues.size < maxOwned && !this.#closing ? this.#site.node : '')
    for (;;) {
      const work = db.tx((tx) => {
        begun()
        return route(this.#app, tx, this.#now(), taker())
      }, routes)
      const { events: routed, isMore, queues: mine } = await work
      for (const state of mine) this.#serve(state)
      if (routed > 0) events.routed.notify()
      if (!isMore || this.#closing) return
    }
  }

  /** Finds due queues, and queues whose owner has stopped. */
  async #look(begun: () => void): Promise<void> {
    begun()
    if (this.#closing) return
    const { db } = this.#app
    if (db.shared && (await anyUnrouted(db))) this.#routing.run()
    const due: queueStore.QueueState[] = []
    const seen = new Set<number>()
    for (const state of await queueStore.unservedQueues(db, this.#now())) {
      const { subscription, owner, beat } = state
      seen.add(subscription)
      if (owner === this.#site.node) {
        if (this.#queues.get(subscription)?.generation !== state.generation) this.#serve(state)
      } else if (owner === '' || this.#owners.hasStalled(subscription, owner, beat)) due.push(state)
    }
    this.#owners.keepOnly(seen)
    await this.#claim(due)
    const next = await queueStore.nextDueTime(db)
    if (next !== undefined) this.#lookAt(next)
  }

  async #claim(due: readonly queueStore.QueueState[]): Promise<void> {
    const some = due.slice(0, Math.max(0, maxOwned - this.#queues.size))
    if (some.length === 0) return
    const claimed = await this.#app.db.tx(async (tx) => {
      const won: queueStore.OwnedQueue[] = []
      for (const state of some) {
        const mine = await queueStore.claimQueue(tx, state, this.#site.node)
        if (mine) won.push(mine)
      }
      return won
    }, rowLocks)
    for (const state of claimed) this.#serve(state)
  }

  /** Renews the lease. If renewals fail until the lease expires, other servers take the queues. */
  async #beat(begun: () => void): Promise<void> {
    begun()
    const { monotonic, node } = this.#site
    if (this.#queues.size === 0) {
      this.#trust.renewed(monotonic())
      return
    }
    const before = [...this.#queues.values()]
    const sent = monotonic()
    const owned = await this.#app.db.tx((tx) => queueStore.beat(tx, node), rowLocks)
    this.#trust.renewed(sent)
    const still = new Set(owned.map(({ subscription }) => subscription))
    for (const queue of before) {
      if (!still.has(queue.subscription)) queue.drop()
      else queue.pump()
    }
  }

  #lookAt(time: string): void {
    const { monotonic } = this.#site
    const at = time === '' ? 0 : Date.parse(time)
    const wait = Math.min(Math.max(at - this.#app.clock().getTime(), 1), longestTimer)
    if (monotonic() + wait >= this.#lookTime) return
    clearTimeout(this.#lookTimer)
    this.#lookTime = monotonic() + wait
    this.#lookTimer = setTimeout(() => {
      this.#lookTime = Infinity
      this.#looking.run()
    }, wait)
    this.#lookTimer.unref()
  }

  #heldUp(error: unknown): void {
    if (this.#closing) return
    this.#site.failed(error)
    const again = () => {
      this.#routing.run()
      this.#looking.run()
    }
    setTimeout(again, retryMs).unref()
  }

  #startTimers(): (() => void)[] {
    let sinceLook = 0
    const look = (): void => {
      sinceLook += busyLookMs
      if (this.#queues.size === 0 && sinceLook < idleLookMs) return
      sinceLook = 0
      this.#looking.run()
    }
    const timers = [setInterval(() => this.#beating.run(), this.#leaseMs / 4), setInterval(look, busyLookMs)]
    for (const timer of timers) timer.unref()
    return timers.map((timer) => () => clearInterval(timer))
  }

  #now(): string {
    return this.#app.clock().toISOString()
  }
}
