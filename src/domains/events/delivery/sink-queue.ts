// Queue of one subscription while this node owns it: reads pending deliveries, sends them, and releases the queue when there is
// nothing to do.
//
// A failing subject backs off alone. A sink fails as a whole if several subjects have failed and none has succeeded, or if it
// requests a pause. Then single deliveries probe it at growing intervals, and all others wait.
import type { App } from '#app.ts'
import { findQueue, type OwnedQueue } from '../routing/queues.store.ts'
import { attempt, backoffMs, type Outcome } from './attempt.ts'
import { deliveryStates, type Payload } from './deliveries.model.ts'
import { positionBefore } from './deliveries.store.ts'
import type { Lane } from './lanes.ts'
import { QueueReader } from './queue-reader.ts'
import type { Entry, Results } from './results.ts'
import { roomFor, sureRoom } from './room.service.ts'
import * as store from './sending.store.ts'

export type SinkQueueDeps = {
  app: App
  url: string
  node: string
  results: Results
  /** True if the node may still send for its queues. */
  maySend(): boolean
  /** Most deliveries of the queue that may be in flight, given those of other queues to the same sink. */
  limit(queue: SinkQueue): number
  /** Called when fewer deliveries are in flight. Other queues with the same sink may wait for this. */
  onRoom(queue: SinkQueue): void
  /**
   * Called when no delivery is in flight and the node does not own the queue any more. `dueTime` is the time of its next work.
   */
  onEnd(queue: SinkQueue, next: { dueTime: string | undefined } | 'unknown'): void
}

/** This number of consecutive failures, for this number of subjects and without a success, means that the sink fails. */
const failingAttempts = 10
const failingSubjects = 3
const firstWindow = 8
/** If the next work is due within this time, in milliseconds, the node keeps the queue. */
const keepMs = 1000
const giveUpAtOnce = 500
/** Most subjects that are added at once. */
const mostAtOnce = 250
/**
 * Interval between checks of a queue that is behind, in milliseconds, since an older server in the cluster does not report its
 * events.
 */
const behindMs = 30_000
const goneReason = 'the endpoint URL responded with 410 Gone'

export class SinkQueue {
  readonly subscription: number
  /** Empty until the sink is known, which is before anything is sent. */
  sink = ''
  /** True if the queue could send, but other queues with the same sink use up the limit. */
  isCrowdedOut = false
  generation: number
  readonly #deps: SinkQueueDeps
  readonly #reader: QueueReader
  #uid = ''
  /** Deliveries in flight or whose result is not on disk yet. A crash would repeat these. */
  #inFlight = 0
  #window = firstWindow
  /** Failures since the last success. */
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

  /** Notifies of new deliveries or events, or of a reset of the sink's failures. */
  note(state: OwnedQueue): void {
    if (this.#ended) return // The receiver of `onEnd` checks the state of the queue.
    if (this.#releasing) this.#noted = true
    if (state.resets !== this.#resets) {
      this.#resets = state.resets
      this.#failures = 0
      this.#blockedUntil = 0
      this.#failing = { attempts: 0, subjects: new Set() }
      this.#reader.lanes.wake(this.#now())
    }
    this.generation = state.generation
    this.#reader.note(state)
    this.pump()
  }

  /**
   * Ends the queue after another node has taken it, or because it is paused or deleted. It is released after the deliveries in
   * flight have ended.
   */
  drop(): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#timer)
    if (this.#inFlight === 0) void this.#giveBack()
  }

  /** Ends the queue without releasing it, as at the end of the process. */
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
      if (room <= 0) return // A result of this queue or of another makes space, and calls this again.
      await this.#reader.read(
        room,
        () => this.#now(),
        () => this.#roomForEvents(),
      )
      // Other queues may have used the limit meanwhile.
      const left = Math.min(room, this.#room())
      if (left <= 0 || this.#ended) return
      const lanes =
        this.#failures > 0 ? this.#reader.lanes.takeProbe(this.#now()) : this.#reader.lanes.take(left, this.#now())
      if (lanes.length === 0) break
      await this.#launch(lanes)
    }
    if (this.#inFlight === 0 && !this.#releasing) await this.#rest()
  }

  async #learnSink(): Promise<boolean> {
    const target = await store.findTarget(this.#deps.app.db, this.subscription, this.#deps.node)
    this.sink = target?.sink ?? ''
    this.#uid = target?.uid ?? ''
    return target !== undefined
  }

  /** Number of further deliveries that may be sent now. */
  #room(): number {
    const limit = this.#deps.limit(this)
    const most = this.#failures > 0 ? Math.min(1, limit) : Math.min(this.#window, limit)
    this.isCrowdedOut = limit <= this.#inFlight
    return most - this.#inFlight
  }

  /** Number of subjects whose events may be read. Each may need a row, which must be within the limit. */
  async #roomForEvents(): Promise<number> {
    const { app, maySend } = this.#deps
    const { lanes, unstored } = this.#reader
    // A failing sink is probed with the rows in memory.
    if (this.#ended || !maySend() || (this.#failures > 0 && lanes.size > 0)) return 0
    if (lanes.size < sureRoom / 2) return sureRoom - lanes.size
    const asked = { id: this.subscription, uid: this.#uid, wanted: unstored + mostAtOnce }
    return (await roomFor(app, app.db, asked)) - unstored
  }

  async #launch(lanes: readonly Lane[]): Promise<void> {
    const { app, node } = this.#deps
    this.#inFlight += lanes.length
    let target: store.Target | undefined
    let payloads: Map<number, Payload>
    try {
      const events = lanes.map((lane) => lane.rows[0]!.event)
      const [found, rows] = await Promise.all([
        store.findTarget(app.db, this.subscription, node),
        store.findPayloads(app.db, [...new Set(events)]),
      ])
      target = found
      payloads = new Map(rows.map((row) => [row.id, row]))
    } catch (error) {
      for (const lane of lanes) this.#reader.lanes.putBack(lane, this.#now())
      this.#landed(lanes.length)
      throw error
    }
    if (!target) {
      this.#landed(lanes.length)
      return this.drop()
    }
    this.sink = target.sink
    for (const lane of lanes) void this.#send(lane, target, payloads.get(lane.rows[0]!.event))
  }

  async #send(lane: Lane, target: store.Target, event: Payload | undefined): Promise<void> {
    const { app, url, results } = this.#deps
    const row = lane.rows[0]!
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
      entry = { ...base, outcome, ...this.#judge(lane, outcome, began, target) }
    } else {
      this.#reader.lanes.done(lane, this.#now())
      entry = { ...base, outcome: undefined, state: deliveryStates.givenUp, nextTime: '' }
    }
    if (entry.pause) {
      this.#ended = true
      app.log.warn('subscription paused', { uid: target.uid, reason: entry.pause.reason })
    }
    // A success frees its lane for the next row at once. It counts as in flight until it is on disk.
    this.pump()
    const stored = await results.record(entry, this.#reader)
    this.#reader.recorded(lane, row, stored, entry.state !== deliveryStates.waiting, this.#now())
    this.#landed(1)
    if (stored === 0) this.drop()
    else if (!this.#ended) this.pump()
  }

  /** Subtracts deliveries in flight. Releases an ended queue after the last one. */
  #landed(count: number): void {
    this.#inFlight -= count
    this.#deps.onRoom(this)
    if (this.#ended && this.#inFlight === 0) void this.#giveBack()
  }

  /** Effects of an outcome on its lane, on the sink, and on the row. */
  #judge(
    lane: Lane,
    outcome: Outcome,
    began: number,
    { uid, group, types }: store.Target,
  ): Pick<Entry, 'state' | 'nextTime' | 'sink' | 'pause'> {
    const now = this.#now()
    const { config } = this.#deps.app
    if (outcome.result === 'delivered') {
      this.#reader.lanes.done(lane, now)
      return { state: deliveryStates.delivered, nextTime: '', ...this.#sinkIsWell(now) }
    }
    const { attempts, createTime } = lane.rows[0]!
    if (outcome.result === 'gone') {
      this.#reader.lanes.retry(lane, now, now)
      return { state: deliveryStates.waiting, nextTime: '', pause: { uid, group, types, reason: goneReason } }
    }
    const sink = this.#sinkFails(lane.subject, outcome, began, now)
    const wait = sink === undefined ? backoffMs(config, attempts + 1) : 0
    if (now - Date.parse(createTime) >= config.deliveryGiveUpMs) {
      this.#reader.lanes.done(lane, now)
      return { state: deliveryStates.givenUp, nextTime: '', ...sink }
    }
    this.#reader.lanes.retry(lane, now + wait, now)
    const nextTime = wait === 0 ? '' : new Date(now + wait).toISOString()
    return { state: deliveryStates.waiting, nextTime, ...sink }
  }

  #sinkIsWell(now: number): Pick<Entry, 'sink'> {
    this.#failing = { attempts: 0, subjects: new Set() }
    this.#window++
    if (this.#failures === 0) return {}
    this.#failures = 0
    this.#blockedUntil = 0
    this.#reader.lanes.wake(now)
    return { sink: { failures: 0, until: '', resets: this.#resets } }
  }

  /** Counts a failure for the sink. Undefined if only the subject fails, as far as is known. */
  #sinkFails(subject: string, outcome: Outcome, began: number, now: number): Pick<Entry, 'sink'> | undefined {
    this.#failing.attempts++
    if (this.#failing.subjects.size < failingSubjects) this.#failing.subjects.add(subject)
    const { attempts, subjects } = this.#failing
    const all = attempts >= failingAttempts && subjects.size >= failingSubjects
    if (!all && this.#failures === 0 && outcome.result !== 'slowed') return undefined
    this.#window = firstWindow
    // Deliveries that were in flight when the sink was found to fail tell nothing new.
    const older = this.#failures > 0 && began < this.#blockedUntil
    if (older && outcome.waitMs === 0) return {}
    if (!older) this.#failures++
    const wait = Math.max(outcome.waitMs, older ? 0 : backoffMs(this.#deps.app.config, this.#failures))
    this.#blockedUntil = Math.max(this.#blockedUntil, now + wait)
    const until = new Date(this.#blockedUntil).toISOString()
    return { sink: { failures: this.#failures, until, resets: this.#resets } }
  }

  /** Waits a moment or releases the queue, since there is nothing to do now. */
  async #rest(): Promise<void> {
    const now = this.#now()
    const blocked = this.#failures > 0 && this.#blockedUntil > now
    const next = blocked ? this.#blockedUntil : this.#reader.lanes.nextDue()
    // If the queue is behind, more events can be read as soon as one of the failing subjects is finished.
    const due = blocked || !this.#reader.isBehind ? next : Math.min(next ?? now + keepMs, now + behindMs)
    if (due !== undefined && due - now <= keepMs) return this.#pumpIn(due - now)
    if (blocked) await this.#giveUpOld(now)
    this.#releasing = true
    this.#noted = false
    const dueTime = due === undefined ? undefined : new Date(due).toISOString()
    // Not awaited: new events are sent meanwhile as usual.
    const { subscription } = this
    const generation = this.#reader.generation ?? this.generation
    void this.#deps.results
      .release({ subscription, generation }, dueTime, this.#reader)
      .then((released) => this.#released(released, dueTime))
  }

  async #released(released: boolean, dueTime: string | undefined): Promise<void> {
    this.#releasing = false
    if (this.#ended) return
    // The queue got new events after the release, and the node owns it again.
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

  /** Gives up the deliveries that are older than the limit, after the sink has failed for that long. */
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
