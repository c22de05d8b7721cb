// One subscription's queue while this node owns it: reads what waits, sends it, and gives the queue back when there is
// nothing to do.
//
// A subject that fails backs off alone. A sink fails as a whole when several subjects failed and none went well, or when
// it asks for a pause; then one delivery at a time tries it, less and less often, and all the others wait for that one.
import type { App } from '#app.ts'
import { attempt, backoffMs, type Outcome } from './attempt.ts'
import { type CaughtUp, lookAhead, passOverBefore } from './behind.ts'
import { deliveryStates, type Payload } from './deliveries.model.ts'
import { type Lane, Lanes, laneRows } from './lanes.ts'
import { LookAhead } from './look-ahead.ts'
import { findQueue, type OwnedQueue } from './queues.store.ts'
import type { Entry, Results } from './results.ts'
import { sureRoom } from './room.service.ts'
import * as store from './sending.store.ts'

export type SinkQueueDeps = {
  app: App
  url: string
  node: string
  results: Results
  /** Whether the node may still send for what it owns. */
  maySend(): boolean
  /** Stores the next deliveries of a queue that is behind, at most so many. */
  catchUp(subscription: number, most: number): Promise<CaughtUp>
  /** How many deliveries of the queue may be on their way at once, those to the same sink from other queues considered. */
  limit(queue: SinkQueue): number
  /** Fewer of the queue are on their way, which may be what another with the same sink waits for. */
  onRoom(queue: SinkQueue): void
  /** Nothing of the queue is on its way, and it is not ours any more. `dueTime` is when it has something to do again. */
  onEnd(queue: SinkQueue, next: { dueTime: string | undefined } | 'unknown'): void
}

const rowsAtOnce = 500
const maxLanes = 20_000
/** So many attempts at so many subjects that failed in a row, without one that went well, are the sink's fault. */
const failingAttempts = 10
const failingSubjects = 3
const firstWindow = 8
/** What is due sooner than this is waited for with the queue in hand. */
const keepMs = 1000
const giveUpAtOnce = 500
/** Deliveries that a queue that is behind stores at once, when its sink answers well. */
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
  readonly #lanes = new Lanes()
  readonly #ahead: LookAhead
  #cursor = 0
  #exhausted = false
  #isBehind: boolean
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

  constructor(deps: SinkQueueDeps, { subscription, generation, failures, blockedUntil, resets, behind }: OwnedQueue) {
    this.#deps = deps
    this.subscription = subscription
    this.generation = generation
    this.#failures = failures
    this.#resets = resets
    this.#isBehind = behind > 0
    this.#blockedUntil = blockedUntil === '' ? 0 : Date.parse(blockedUntil)
    const { app, node } = deps
    const hasPending = (subject: string) => this.#lanes.has(subject)
    const look = (after: number) => lookAhead(app, app.db, { subscription, node, after }, hasPending)
    this.#ahead = new LookAhead(look, hasPending)
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
      this.#lanes.wake(this.#now())
    }
    this.generation = state.generation
    this.#isBehind = state.behind > 0
    this.#exhausted = false
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
      this.#deps.app.log.error('deliveries could not be read', { error })
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
      await this.#read(room)
      // Others may have taken it meanwhile.
      const left = Math.min(room, this.#room())
      if (left <= 0) return
      const lanes = this.#failures > 0 ? this.#lanes.takeProbe(this.#now()) : this.#lanes.take(left, this.#now())
      if (lanes.length === 0) break
      await this.#launch(lanes)
    }
    if (this.#inFlight === 0 && !this.#releasing) await this.#rest()
  }

  async #learnSink(): Promise<boolean> {
    const target = await store.findTarget(this.#deps.app.db, this.subscription, this.#deps.node)
    this.sink = target?.sink ?? ''
    return target !== undefined
  }

  /** How many more may be sent now. */
  #room(): number {
    const limit = this.#deps.limit(this)
    const most = this.#failures > 0 ? Math.min(1, limit) : Math.min(this.#window, limit)
    this.isCrowdedOut = limit <= this.#inFlight
    return most - this.#inFlight
  }

  async #read(room: number): Promise<void> {
    const { db } = this.#deps.app
    const { subscription } = this
    for (const lane of this.#lanes.hungry()) {
      const place = { subscription, subject: lane.subject, after: lane.last, upTo: this.#cursor }
      const rows = await store.scanSubject(db, place, laneRows)
      this.#lanes.feed(lane, rows, rows.length === laneRows, this.#now())
    }
    while (this.#lanes.readyCount < room && this.#lanes.size < maxLanes) {
      if (this.#exhausted && !(await this.#catchUp())) return
      const { generation } = this
      const rows = await store.scanWaiting(db, subscription, this.#cursor, rowsAtOnce)
      this.#cursor = rows.at(-1)?.id ?? this.#cursor
      this.#lanes.add(rows, this.#now())
      if (rows.length < rowsAtOnce && generation === this.generation) this.#exhausted = true
    }
  }

  /** False when there is nothing more to read. A sink that fails is tried with what it has. */
  async #catchUp(): Promise<boolean> {
    if (!this.#isBehind || this.#ended || !this.#deps.maySend()) return false
    if (this.#failures > 0 && this.#lanes.size > 0) return false
    if (this.#lanes.hasRows(sureRoom) && !(await this.#ahead.finds())) return false
    const { generation } = this
    const isUnsure = this.#window === firstWindow || this.#failing.attempts >= failingAttempts / 2
    const most = isUnsure ? firstWindow : Math.min(2 * this.#window, mostAtOnce)
    const { added, isBehind, isFull } = await this.#deps.catchUp(this.subscription, most)
    if (generation === this.generation) this.#isBehind = isBehind
    if (added > 0) this.#exhausted = false
    return !isFull && (added > 0 || isBehind)
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
      this.#inFlight -= lanes.length
      this.#deps.onRoom(this)
      for (const lane of lanes) this.#lanes.putBack(lane, this.#now())
      throw error
    }
    if (!target) {
      this.#inFlight -= lanes.length
      this.#deps.onRoom(this)
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
    const base = { subscription: this.subscription, delivery: row.id, time }
    if (row.attempts === 0) app.metrics.deliveryLatency.observe((began - Date.parse(row.createTime)) / 1000)
    let entry: Entry
    if (event) {
      const outcome = await attempt(app, url, target, event).catch((error: unknown): Outcome => {
        app.log.error('delivery could not be made', { error })
        return { result: 'unreachable', status: 0, durationMs: 0, waitMs: 0 }
      })
      app.metrics.deliveryAttempts.inc({ result: outcome.result })
      app.tracer.past('delivery', { 'pinfold.result': outcome.result }, outcome.durationMs / 1000, false)
      entry = { ...base, outcome, ...this.#judge(lane, outcome, began, target) }
    } else {
      this.#lanes.done(lane, this.#now())
      entry = { ...base, outcome: undefined, state: deliveryStates.givenUp, nextTime: '' }
    }
    if (entry.pause) {
      this.#ended = true
      app.log.warn('subscription paused', { uid: target.uid, reason: entry.pause.reason })
    }
    // What went well makes room for the next in its lane at once; the place in flight is taken until it is on disk.
    this.pump()
    await results.record(entry)
    this.#inFlight--
    this.#deps.onRoom(this)
    if (!this.#ended) this.pump()
    else if (this.#inFlight === 0) void this.#giveBack()
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
      this.#lanes.done(lane, now)
      return { state: deliveryStates.delivered, nextTime: '', ...this.#sinkIsWell(now) }
    }
    const { attempts, createTime } = lane.rows[0]!
    if (outcome.result === 'gone') {
      this.#lanes.retry(lane, now, now)
      return { state: deliveryStates.waiting, nextTime: '', pause: { uid, group, types, reason: goneReason } }
    }
    const sink = this.#sinkFails(lane.subject, outcome, began, now)
    const wait = sink === undefined ? backoffMs(config, attempts + 1) : 0
    if (now - Date.parse(createTime) >= config.deliveryGiveUpMs) {
      this.#lanes.done(lane, now)
      return { state: deliveryStates.givenUp, nextTime: '', ...sink }
    }
    this.#lanes.retry(lane, now + wait, now)
    const nextTime = wait === 0 ? '' : new Date(now + wait).toISOString()
    return { state: deliveryStates.waiting, nextTime, ...sink }
  }

  #sinkIsWell(now: number): Pick<Entry, 'sink'> {
    this.#failing = { attempts: 0, subjects: new Set() }
    this.#window++
    if (this.#failures === 0) return {}
    this.#failures = 0
    this.#blockedUntil = 0
    this.#lanes.wake(now)
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
    const next = blocked ? this.#blockedUntil : this.#lanes.nextDue()
    // Behind so many that fail, there is more as soon as one of them is done with.
    const due = blocked || !this.#isBehind ? next : Math.min(next ?? now + keepMs, now + behindMs)
    if (due !== undefined && due - now <= keepMs) return this.#pumpIn(due - now)
    if (blocked) await this.#giveUpOld(now)
    this.#releasing = true
    this.#noted = false
    const dueTime = due === undefined ? undefined : new Date(due).toISOString()
    // Not awaited: what comes meanwhile is sent as if nothing had happened.
    const { subscription, generation } = this
    void this.#deps.results
      .release({ subscription, generation }, dueTime)
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
      app.log.error('a queue could not be read', { error })
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
    if (!this.#isBehind) return
    await app.db.tx((tx) => passOverBefore(tx, this.subscription, time), { isolation: 'rowLocks' })
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
