// Queue of one subscription while this server owns it. The queue reads pending deliveries and sends them. The server releases the
// queue if there is nothing to send. If deliveries of one subject fail, only that subject waits. A sink has failed if several
// subjects failed and none succeeded, or if the sink requests a pause. Then single deliveries test the sink at growing intervals,
// and all other deliveries wait.
import type { App } from '#app.ts'
import { findQueue, type OwnedQueue } from '../routing/queues.store.ts'
import { attempt, backoffMs, type Outcome } from './attempt.ts'
import { deliveryStates, type Payload } from './deliveries.model.ts'
import { positionBefore } from './deliveries.store.ts'
import { capacityFor, guaranteedDeliveries } from './delivery-limits.service.ts'
import { QueueReader } from './queue-reader.ts'
import type { Entry, Results } from './results.ts'
import * as store from './sending.store.ts'
import type { SubjectQueue } from './subject-queues.ts'

export type SinkQueueDeps = {
  app: App
  url: string
  node: string
  results: Results
  /** True if the server can still send deliveries of its queues. */
  maySend(): boolean
  /** Limit on the deliveries of the queue in flight. Depends on the deliveries of other queues to the same sink. */
  limit(queue: SinkQueue): number
  /** Called when the number of deliveries in flight falls. Other queues with the same sink may wait for this. */
  onRoom(queue: SinkQueue): void
  /**
   * Called when no delivery is in flight and the server does not own the queue any more. `dueTime` is the time at which the queue
   * has work again.
   */
  onEnd(queue: SinkQueue, next: { dueTime: string | undefined } | 'unknown'): void
}

/** Conditions for a failed sink: the number of consecutive failures, and the number of different subjects. */
const failingAttempts = 10
const failingSubjects = 3
const firstWindow = 8
/** Time in milliseconds. If the queue has work again within this time, the server keeps the queue. */
const keepMs = 1000
const giveUpAtOnce = 500
/** Limit on the subjects that one read adds. */
const mostAtOnce = 250
/**
 * Interval in milliseconds between checks of a queue that has untried events. A server of an older version does not report its
 * events.
 */
const behindMs = 30_000
const goneReason = 'the endpoint URL responded with 410 Gone'

export class SinkQueue {
  readonly subscription: number
  /** URL of the sink. Empty until the sink was read, which happens before the first request. */
  sink = ''
  /** True if the queue has deliveries to send, but other queues use the whole limit of the sink. */
  isCrowdedOut = false
  generation: number
  readonly #deps: SinkQueueDeps
  readonly #reader: QueueReader
  #uid = ''
  /** Number of deliveries that are in flight, or whose result is not written yet. After a crash, these are sent again. */
  #inFlight = 0
  #window = firstWindow
  /** Failures of the sink since its last success. */
  #failing = { attempts: 0, subjects: new Set<string>() }
  #failures: number
  #blockedUntil: number
  #pumping = false
  #again = false
  #releasing = false
  #noted = false
  #resets: number
  #ended = false
  #timer: NodeJS.Timeout | undefined

  constructor(deps: SinkQueueDeps, { subscription, generation, failures, blockedUntil, resets }: OwnedQueue) {
    this.#deps = deps
    this.subscription = subscription
    this.generation = generation
    this.#failures = failures
    this.#resets = resets
    this.#blockedUntil = blockedUntil === '' ? 0 : Date.parse(blockedUntil)
    this.#reader = new QueueReader(deps.app, { subscription, node: deps.node })
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** Reports new deliveries or events, or that the failures of the sink were reset. */
  note(state: OwnedQueue): void {
    if (this.#ended) return // The receiver of `onEnd` checks the state of the queue.
    if (this.#releasing) this.#noted = true
    if (state.resets !== this.#resets) {
      this.#resets = state.resets
      this.#failures = 0
      this.#blockedUntil = 0
      this.#failing = { attempts: 0, subjects: new Set() }
      this.#reader.subjectQueues.wake(this.#now())
    }
    this.generation = state.generation
    this.#reader.note(state)
    this.pump()
  }

  /**
   * Ends the queue because another server has taken it, or because it is paused or deleted. The queue is released after the
   * deliveries in flight have ended.
   */
  drop(): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#timer)
    if (this.#inFlight === 0) void this.#giveBack()
  }

  /** Ends the queue without releasing it, for example when the process ends. */
  stop(): void {
    this.#ended = true
    clearTimeout(this.#timer)
  }

  async #giveBack(): Promise<void> {
    await this.#deps.results.free(this.subscription)
    this.#deps.onEnd(this, 'unknown')
  }

  /** Sends as many deliveries as the limits allow. */
  pump(): void {
    this.#again = true
    if (this.#pumping) return
    this.#pumping = true
    void this.#pumpAll()
  }

  async #pumpAll(): Promise<void> {
    try {
      while (this.#again && !this.#ended) {
        this.#again = false
        await this.#step()
      }
    } catch (error) {
      this.#deps.app.failures.repeated('reading pending deliveries failed', error)
      this.#pumpIn(keepMs)
    } finally {
      this.#pumping = false
    }
  }

  async #step(): Promise<void> {
    clearTimeout(this.#timer)
    for (;;) {
      if (this.#ended || !this.#deps.maySend()) return
      const probing = this.#failures > 0
      if (probing && this.#blockedUntil > this.#now()) break
      if (this.sink === '' && !(await this.#learnSink())) return this.drop()
      const room = this.#room()
      if (room <= 0) return // When a delivery of any queue ends, `pump` is called again.
      await this.#reader.read(
        room,
        () => this.#now(),
        () => this.#roomForEvents(),
      )
      // In the meantime, other queues may have used the limit.
      const left = Math.min(room, this.#room())
      if (left <= 0 || this.#ended) return
      const subjectQueues =
        this.#failures > 0
          ? this.#reader.subjectQueues.takeProbe(this.#now())
          : this.#reader.subjectQueues.take(left, this.#now())
      if (subjectQueues.length === 0) break
      await this.#launch(subjectQueues)
    }
    if (this.#inFlight === 0 && !this.#releasing) await this.#rest()
  }

  async #learnSink(): Promise<boolean> {
    const target = await store.findTarget(this.#deps.app.db, this.subscription, this.#deps.node)
    this.sink = target?.sink ?? ''
    this.#uid = target?.uid ?? ''
    return target !== undefined
  }

  /** Number of deliveries that can be added to those in flight. */
  #room(): number {
    const limit = this.#deps.limit(this)
    const most = this.#failures > 0 ? Math.min(1, limit) : Math.min(this.#window, limit)
    this.isCrowdedOut = limit <= this.#inFlight
    return most - this.#inFlight
  }

  /** Number of subjects whose events can be read. Each subject may need a row, and the limits must allow the row. */
  async #roomForEvents(): Promise<number> {
    const { app, maySend } = this.#deps
    const { subjectQueues, unstored } = this.#reader
    // While the sink fails, rows in memory are sufficient to test the sink.
    if (this.#ended || !maySend() || (this.#failures > 0 && subjectQueues.size > 0)) return 0
    if (subjectQueues.size < guaranteedDeliveries / 2) return guaranteedDeliveries - subjectQueues.size
    const asked = { id: this.subscription, uid: this.#uid, wanted: unstored + mostAtOnce }
    return (await capacityFor(app, app.db, asked)) - unstored
  }

  async #launch(subjectQueues: readonly SubjectQueue[]): Promise<void> {
    const { app, node } = this.#deps
    this.#inFlight += subjectQueues.length
    let target: store.Target | undefined
    let payloads: Map<number, Payload>
    try {
      const events = subjectQueues.map((subjectQueue) => subjectQueue.rows[0]!.event)
      const [found, rows] = await Promise.all([
        store.findTarget(app.db, this.subscription, node),
        store.findPayloads(app.db, [...new Set(events)]),
      ])
      target = found
      payloads = new Map(rows.map((row) => [row.id, row]))
    } catch (error) {
      for (const subjectQueue of subjectQueues) this.#reader.subjectQueues.putBack(subjectQueue, this.#now())
      this.#landed(subjectQueues.length)
      throw error
    }
    if (!target) {
      this.#landed(subjectQueues.length)
      return this.drop()
    }
    this.sink = target.sink
    for (const subjectQueue of subjectQueues)
      void this.#send(subjectQueue, target, payloads.get(subjectQueue.rows[0]!.event))
  }

  async #send(subjectQueue: SubjectQueue, target: store.Target, event: Payload | undefined): Promise<void> {
    const { app, url, results } = this.#deps
    const row = subjectQueue.rows[0]!
    const began = this.#now()
    const time = new Date(began).toISOString()
    const { id: delivery, event: number, subject, createTime } = row
    const of = { event: number, subject, createTime }
    const base = { subscription: this.subscription, delivery, event: of, time }
    if (row.attempts === 0) app.metrics.deliveryLatency.observe((began - Date.parse(row.createTime)) / 1000)
    let entry: Entry
    if (event) {
      const outcome = await attempt(app, url, target, event).catch((error: unknown): Outcome => {
        app.failures.request(app.log, 'delivery attempt failed in the server', error, {})
        return { result: 'unreachable', status: 0, durationMs: 0, waitMs: 0 }
      })
      app.metrics.deliveryAttempts.inc({ result: outcome.result })
      app.tracer.past('delivery', { 'pinfold.result': outcome.result }, outcome.durationMs / 1000, false)
      entry = { ...base, outcome, ...this.#judge(subjectQueue, outcome, began, target) }
    } else {
      this.#reader.subjectQueues.done(subjectQueue, this.#now())
      entry = { ...base, outcome: undefined, state: deliveryStates.givenUp, nextTime: '' }
    }
    if (entry.pause) {
      this.#ended = true
      app.log.warn('subscription paused', { uid: target.uid, reason: entry.pause.reason })
    }
    // After a success, the next row of the subject can be sent at once. The finished delivery is still counted as in flight until
    // its result is written.
    this.pump()
    const stored = await results.record(entry, this.#reader)
    this.#reader.recorded(subjectQueue, row, stored, entry.state !== deliveryStates.waiting, this.#now())
    this.#landed(1)
    if (stored === 0) this.drop()
    else if (!this.#ended) this.pump()
  }

  /** Reduces the number of deliveries in flight. Releases an ended queue after its last delivery. */
  #landed(count: number): void {
    this.#inFlight -= count
    this.#deps.onRoom(this)
    if (this.#ended && this.#inFlight === 0) void this.#giveBack()
  }

  /** Applies an outcome to the subject, to the sink and to the delivery's row. */
  #judge(
    subjectQueue: SubjectQueue,
    outcome: Outcome,
    began: number,
    { uid, group, types }: store.Target,
  ): Pick<Entry, 'state' | 'nextTime' | 'sink' | 'pause'> {
    const now = this.#now()
    const { config } = this.#deps.app
    if (outcome.result === 'delivered') {
      this.#reader.subjectQueues.done(subjectQueue, now)
      return { state: deliveryStates.delivered, nextTime: '', ...this.#sinkIsWell(now) }
    }
    const { attempts, createTime } = subjectQueue.rows[0]!
    if (outcome.result === 'gone') {
      this.#reader.subjectQueues.retry(subjectQueue, now, now)
      return { state: deliveryStates.waiting, nextTime: '', pause: { uid, group, types, reason: goneReason } }
    }
    const sink = this.#sinkFails(subjectQueue.subject, outcome, began, now)
    const wait = sink === undefined ? backoffMs(config, attempts + 1) : 0
    if (now - Date.parse(createTime) >= config.deliveryGiveUpMs) {
      this.#reader.subjectQueues.done(subjectQueue, now)
      return { state: deliveryStates.givenUp, nextTime: '', ...sink }
    }
    this.#reader.subjectQueues.retry(subjectQueue, now + wait, now)
    const nextTime = wait === 0 ? '' : new Date(now + wait).toISOString()
    return { state: deliveryStates.waiting, nextTime, ...sink }
  }

  #sinkIsWell(now: number): Pick<Entry, 'sink'> {
    this.#failing = { attempts: 0, subjects: new Set() }
    this.#window++
    if (this.#failures === 0) return {}
    this.#failures = 0
    this.#blockedUntil = 0
    this.#reader.subjectQueues.wake(now)
    return { sink: { failures: 0, until: '', resets: this.#resets } }
  }

  /** Counts a failure of the sink. Returns undefined if so far only deliveries of one subject fail. */
  #sinkFails(subject: string, outcome: Outcome, began: number, now: number): Pick<Entry, 'sink'> | undefined {
    this.#failing.attempts++
    if (this.#failing.subjects.size < failingSubjects) this.#failing.subjects.add(subject)
    const { attempts, subjects } = this.#failing
    const all = attempts >= failingAttempts && subjects.size >= failingSubjects
    if (!all && this.#failures === 0 && outcome.result !== 'slowed') return undefined
    this.#window = firstWindow
    // Deliveries that began before the sink was found to have failed are not counted.
    const older = this.#failures > 0 && began < this.#blockedUntil
    if (older && outcome.waitMs === 0) return {}
    if (!older) this.#failures++
    const wait = Math.max(outcome.waitMs, older ? 0 : backoffMs(this.#deps.app.config, this.#failures))
    this.#blockedUntil = Math.max(this.#blockedUntil, now + wait)
    const until = new Date(this.#blockedUntil).toISOString()
    return { sink: { failures: this.#failures, until, resets: this.#resets } }
  }

  /** Waits a short time or releases the queue, because there is nothing to send now. */
  async #rest(): Promise<void> {
    const now = this.#now()
    const blocked = this.#failures > 0 && this.#blockedUntil > now
    const next = blocked ? this.#blockedUntil : this.#reader.subjectQueues.nextDue()
    // If the queue has more events to read, it can read them as soon as one of the failing subjects is finished.
    const due = blocked || !this.#reader.isBehind ? next : Math.min(next ?? now + keepMs, now + behindMs)
    if (due !== undefined && due - now <= keepMs) return this.#pumpIn(due - now)
    if (blocked) await this.#giveUpOld(now)
    this.#releasing = true
    this.#noted = false
    const dueTime = due === undefined ? undefined : new Date(due).toISOString()
    // The release is not awaited, so that new events are sent in the meantime.
    const { subscription } = this
    const generation = this.#reader.generation ?? this.generation
    void this.#deps.results
      .release({ subscription, generation }, dueTime, this.#reader)
      .then((released) => this.#released(released, dueTime))
  }

  async #released(released: boolean, dueTime: string | undefined): Promise<void> {
    this.#releasing = false
    if (this.#ended) return
    // The queue got new events after the release, and this server owns the queue again.
    if (this.#noted) return this.pump()
    if (released) {
      this.#ended = true
      this.#deps.onEnd(this, { dueTime })
      return
    }
    const { app, node } = this.#deps
    try {
      const state = await findQueue(app.db, this.subscription)
      if (state?.owner === node) this.note(state)
      else this.drop()
    } catch (error) {
      app.failures.repeated('reading the state of a delivery queue failed', error)
      this.drop()
    }
  }

  /** After the sink has failed for the whole time limit, gives up the deliveries that are older than the limit. */
  async #giveUpOld(now: number): Promise<void> {
    const { app } = this.#deps
    const time = new Date(now - app.config.deliveryGiveUpMs).toISOString()
    const some = () =>
      app.db.tx((tx) => store.giveUpOlderThan(tx, this.subscription, time, giveUpAtOnce), { isolation: 'rowLocks' })
    while ((await some()) === giveUpAtOnce) await this.#deps.results.trim(this.subscription)
    this.#reader.passOver(await positionBefore(app.db, time), now)
  }

  #pumpIn(ms: number): void {
    clearTimeout(this.#timer)
    if (this.#ended) return
    this.#timer = setTimeout(() => this.pump(), Math.max(ms, 1))
  }

  #now(): number {
    return this.#deps.app.clock().getTime()
  }
}
