// One subscription's queue while this node owns it: reads what waits, sends it, and gives the queue back when there is
// nothing to do.
//
// A subject that fails backs off alone. A sink fails as a whole when several subjects failed and none went well, or when
// it asks for a pause; then one delivery at a time tries it, less and less often, and all the others wait for that one.
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
  /** Whether the node may still send for what it owns. */
  maySend(): boolean
  /** How many deliveries of the queue may be on their way at once, those to the same sink from other queues considered. */
  limit(queue: SinkQueue): number
  /** Fewer of the queue are on their way, which may be what another with the same sink waits for. */
  onRoom(queue: SinkQueue): void
  /** Nothing of the queue is on its way, and it is not ours any more. `dueTime` is when it has something to do again. */
  onEnd(queue: SinkQueue, next: { dueTime: string | undefined } | 'unknown'): void
}

/** So many attempts at so many subjects that failed in a row, without one that went well, are the sink's fault. */
const failingAttempts = 10
const failingSubjects = 3
const firstWindow = 8
/** What is due sooner than this is waited for with the queue in hand. */
const keepMs = 1000
const giveUpAtOnce = 500
/** Subjects that are added at once. */
const mostAtOnce = 250
/** A queue that is behind is looked at so often, since an older server in the cluster does not report its events. */
const behindMs = 30_000
const goneReason = 'the sink answered 410 Gone'

export class SinkQueue {
  readonly subscription: number
  /** Known before anything is sent to it. */
  sink = ''
  /** It could send, but that others with the same sink have taken all the room. */
  isCrowdedOut = false
  generation: number
  readonly #deps: SinkQueueDeps
  readonly #reader: QueueReader
  #uid = ''
  /** On their way, and those whose result is not on disk yet: what a crash would repeat. */
  #inFlight = 0
  #window = firstWindow
  /** Since the last attempt that went well. */
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

  /** The queue has got something, or the sink is said to be well again. */
  note(state: OwnedQueue): void {
    if (this.#ended) return // Whoever is told of the end looks what has become of it.
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

  /** Another node has it, or it is paused or gone. What is on its way comes to its end before anybody else has it from us. */
  drop(): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#timer)
    if (this.#inFlight === 0) void this.#giveBack()
  }

  /** As when the process ends. */
  stop(): void {
    this.#ended = true
    clearTimeout(this.#timer)
  }

  async #giveBack(): Promise<void> {
    await this.#deps.results.free(this.subscription)
    this.#deps.onEnd(this, 'unknown')
  }

  /** Sends what can be sent. */
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
      this.#deps.app.failures.repeated('deliveries could not be read', error)
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
      if (room <= 0) return // A result makes room, of this queue or of another, and comes back here.
      await this.#reader.read(
        room,
        () => this.#now(),
        () => this.#roomForEvents(),
      )
      // Others may have taken it meanwhile.
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

  /** How many more may be sent now. */
  #room(): number {
    const limit = this.#deps.limit(this)
    const most = this.#failures > 0 ? Math.min(1, limit) : Math.min(this.#window, limit)
    this.isCrowdedOut = limit <= this.#inFlight
    return most - this.#inFlight
  }

  /** Subjects of which events may be read. Each may need a row, for which there must be room. */
  async #roomForEvents(): Promise<number> {
    const { app, maySend } = this.#deps
    const { lanes, unstored } = this.#reader
    // A sink that fails is tried with what is in hand.
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
        app.failures.request(app.log, 'delivery could not be made', error, {})
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
    // What went well makes room for the next in its lane at once; the place in flight is taken until it is on disk.
    this.pump()
    const stored = await results.record(entry, this.#reader)
    this.#reader.recorded(lane, row, stored, entry.state !== deliveryStates.waiting, this.#now())
    this.#landed(1)
    if (stored === 0) this.drop()
    else if (!this.#ended) this.pump()
  }

  /** So many are not on their way any more. A queue that has ended meanwhile is given back after the last one. */
  #landed(count: number): void {
    this.#inFlight -= count
    this.#deps.onRoom(this)
    if (this.#ended && this.#inFlight === 0) void this.#giveBack()
  }

  /** What an outcome means for its lane, for the sink, and for the row. */
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

  /** `undefined` when it is the subject that fails, as far as we can tell. */
  #sinkFails(subject: string, outcome: Outcome, began: number, now: number): Pick<Entry, 'sink'> | undefined {
    this.#failing.attempts++
    if (this.#failing.subjects.size < failingSubjects) this.#failing.subjects.add(subject)
    const { attempts, subjects } = this.#failing
    const all = attempts >= failingAttempts && subjects.size >= failingSubjects
    if (!all && this.#failures === 0 && outcome.result !== 'slowed') return undefined
    this.#window = firstWindow
    // Those that were on their way when the sink was found to fail say nothing new.
    const older = this.#failures > 0 && began < this.#blockedUntil
    if (older && outcome.waitMs === 0) return {}
    if (!older) this.#failures++
    const wait = Math.max(outcome.waitMs, older ? 0 : backoffMs(this.#deps.app.config, this.#failures))
    this.#blockedUntil = Math.max(this.#blockedUntil, now + wait)
    const until = new Date(this.#blockedUntil).toISOString()
    return { sink: { failures: this.#failures, until, resets: this.#resets } }
  }

  /** There is nothing to do now: waits a moment, or gives the queue back. */
  async #rest(): Promise<void> {
    const now = this.#now()
    const blocked = this.#failures > 0 && this.#blockedUntil > now
    const next = blocked ? this.#blockedUntil : this.#reader.lanes.nextDue()
    // Behind so many that fail, there is more as soon as one of them is done with.
    const due = blocked || !this.#reader.isBehind ? next : Math.min(next ?? now + keepMs, now + behindMs)
    if (due !== undefined && due - now <= keepMs) return this.#pumpIn(due - now)
    if (blocked) await this.#giveUpOld(now)
    this.#releasing = true
    this.#noted = false
    const dueTime = due === undefined ? undefined : new Date(due).toISOString()
    // Not awaited: what comes meanwhile is sent as if nothing had happened.
    const { subscription } = this
    const generation = this.#reader.generation ?? this.generation
    void this.#deps.results
      .release({ subscription, generation }, dueTime, this.#reader)
      .then((released) => this.#released(released, dueTime))
  }

  async #released(released: boolean, dueTime: string | undefined): Promise<void> {
    this.#releasing = false
    if (this.#ended) return
    // The queue has got something behind the release, and with it came back to us.
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
      app.failures.repeated('a queue could not be read', error)
      this.drop()
    }
  }

  /** A sink that has failed for so long gets no more of what is as old. */
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
