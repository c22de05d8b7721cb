// The background duties, and what runs them. A duty runs by its period and by its signal, never twice at once on a node,
// and what one node at a time may run waits for its lease. Nothing else has timers for duties.
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setInterval } from 'node:timers/promises'
import type { App } from './app.ts'
import { createLeases, type LastRun, type Lease, LeaseLost, type Leases } from './db/leases.ts'
import { deleteSilentNodes } from './db/nodes.ts'
import type { Change } from './db/sql.ts'
import { domains } from './domains/domains.ts'
import { collectBlobs } from './domains/registry/blobs/collect-blobs.duty.ts'
import type { Duty, DutyStatus, LongDuty, RunningDuty } from './duty.ts'
import { version } from './version.ts'

const dayMs = 24 * 60 * 60_000

/** Forgets the servers that have said nothing for a day. */
const sweepNodes: Duty = {
  name: 'nodes.sweep',
  everyMs: 60 * 60_000,
  runsOn: 'one node',
  async run({ skew }, lease) {
    const before = new Date(skew.now().getTime() - dayMs).toISOString()
    return { nodes: await lease.inBatches((tx) => deleteSilentNodes(tx, before)) }
  },
}

/** What a server does besides answering. */
export const duties: readonly (Duty | LongDuty)[] = [...domains.flatMap((domain) => domain.duties), sweepNodes]

/** What a command of the operator does that opens the data folder itself: only what it may ask for. */
export const dutiesOfCommands: readonly Duty[] = [collectBlobs]

export type Workers = {
  /** This process among those that share the database. */
  node: string
  /**
   * Ends what runs, at the next step where it can be taken up again, and gives every lease back. What is on its way to
   * others has `graceMs`, unless said otherwise as long as requests in flight.
   */
  close(graceMs?: number): Promise<void>
}

export type WorkersOptions = {
  duties?: readonly (Duty | LongDuty)[]
  /** Of a process that serves: what clients call it, and where it listens. */
  server?: { url: string; localUrl: string }
  /** Asked once the others can see this node, and before it does anything. What it throws ends the start. */
  mayServe?: () => Promise<void>
  monotonic?: () => number
  /** The wait before a duty that has failed runs again, doubled each time until it is the duty's period. */
  retryMs?: number
}

/** Starts the duties. Resolves once each has been started, not once it has run. */
export async function startWorkers(app: App, options: WorkersOptions = {}): Promise<Workers> {
  const { server, mayServe, monotonic = () => performance.now(), retryMs = 1000 } = options
  const list = options.duties ?? duties
  const node = randomBytes(8).toString('hex')
  // Lines of several servers come together where somebody looks for one.
  if (app.db.shared) app.log.mark({ node })
  const stop = new AbortController()
  const repeated = list.filter((one): one is Duty => 'run' in one)
  const leases = createLeases(app.db, {
    node,
    leaseMs: app.config.leaseMs,
    monotonic,
    skew: app.skew,
    names: repeated.filter(({ runsOn }) => runsOn === 'one node').map(({ name }) => name),
    facts: server && { version, ...server },
    signal: stop.signal,
  })
  const runners = new Map<string, Runner>()
  const warnOfClock = clockWarning(app)
  const beat: Duty = {
    name: 'nodes.beat',
    // Without others there is nobody to tell.
    everyMs: app.db.shared ? app.config.leaseMs / 4 : 60_000,
    runsOn: 'every node',
    async run() {
      for (const { name, last } of await leases.look()) runners.get(name)?.taken(last)
      for (const name of runners.keys()) showLease(name)
      warnOfClock(app.skew.offsetMs())
      app.fleet.nodes = leases.livingNodes()
      if (runners.has(sweepNodes.name)) app.fleet.isFirst = leases.find(sweepNodes.name) !== undefined
      return {}
    },
  }
  app.metrics.duties.names.declare([beat, ...list].map(({ name }) => name))
  const showLease = (name: string): void => {
    const { runsOn } = runners.get(name)!.duty
    if (runsOn === 'one node') app.metrics.duties.leaseHeld.set({ duty: name }, leases.find(name) ? 1 : 0)
  }
  for (const duty of [beat, ...repeated]) {
    runners.set(duty.name, createRunner(app, duty, { leases, retryMs, monotonic, signal: stop.signal }))
  }
  wakeOnCommit(app, [...runners.values()])
  if (mayServe) await askWhileThere(leases, app.config.leaseMs / 4, mayServe)
  // First of all, so that the node is there before it has anything.
  await runners.get(beat.name)!.first()
  for (const { duty, first } of runners.values()) if (duty.runsOn === 'every node' && duty !== beat) void first()
  const started: RunningDuty[] = []
  for (const duty of list) if (!('run' in duty)) started.push(await startLong(app, duty, { node, monotonic, server }))
  app.log.debug('duties started', { node })

  return {
    node,
    async close(graceMs = app.config.drainMs) {
      stop.abort(new Error('the server stops'))
      await Promise.all([...runners.values(), ...started].map((one) => one.close(graceMs)))
      await leases.release().catch((error: unknown) => app.log.warn('leases could not be given back', { error }))
      for (const name of runners.keys()) showLease(name)
    },
  }
}

/** Runs duties after commits of this process that give them work. */
function wakeOnCommit({ db }: App, runners: readonly Runner[]): void {
  const waiting = runners.filter(({ duty }) => duty.wakeOn)
  // A job that a request has woken is no part of that request.
  const listener = AsyncLocalStorage.bind((changes: ReadonlySet<Change>) => {
    for (const { duty, wake } of waiting) if (duty.wakeOn!.some((one) => changes.has(one))) wake()
  })
  db.onCommit(listener)
}

/** What the answer takes may be longer than others wait for a sign of life. */
async function askWhileThere(leases: Leases, everyMs: number, ask: () => Promise<void>): Promise<void> {
  await leases.announce()
  const asked = new AbortController()
  const announcing = (async () => {
    for await (const _ of setInterval(everyMs, undefined, { signal: asked.signal })) await leases.announce()
  })().catch(() => {}) // Either it has been asked, or the database is away, which whoever asks it finds out.
  const refused = await ask().then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  asked.abort()
  await announcing
  if (!refused) return
  await leases.release().catch(() => {})
  throw refused.error
}

type Runner = {
  duty: Duty
  /** Runs it soon, unless it fails just now. */
  wake(): void
  /** Runs it now; resolves once it has run. */
  first(): Promise<void>
  /** The lease is ours: runs it as soon as the period since the last run is over. */
  taken(last: LastRun): void
  close(): Promise<void>
}

type RunnerNeeds = { leases: Leases; retryMs: number; monotonic: () => number; signal: AbortSignal }

/** Notes how a run ended that begins now; what runs all the time and did nothing is not worth a write. */
function recorder({ skew }: App, leases: Leases, lease: Lease, name: string, everyMs: number) {
  const now = () => skew.now().toISOString()
  const start = now()
  return async (result: string, status: DutyStatus): Promise<void> => {
    if (lease.fence === 0 || (everyMs < 60_000 && result === 'ok' && !didAnything(status))) return
    await leases.record(name, { start, end: now(), result, status: JSON.stringify(status) })
  }
}

function createRunner(app: App, duty: Duty, needs: RunnerNeeds): Runner {
  const { leases, retryMs, signal } = needs
  const everyMs = typeof duty.everyMs === 'function' ? duty.everyMs(app) : duty.everyMs
  const log = createDutyLog(app, duty.name, needs.monotonic)
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let again = false
  let failures = 0

  function plan(ms: number): void {
    clearTimeout(timer)
    if (signal.aborted) return
    timer = setTimeout(run, ms)
    timer.unref()
  }

  function run(): Promise<void> {
    if (running) again = true
    // Begun in a moment, so that what ends at once does not end before it is known to run.
    running ??= Promise.resolve().then(runAll)
    return running
  }

  async function runAll(): Promise<void> {
    clearTimeout(timer)
    try {
      do {
        again = false
        const lease = duty.runsOn === 'every node' ? leases.everyNode : leases.find(duty.name)
        // Without the lease nothing is planned; whoever gets it begins anew.
        if (!lease || signal.aborted) return
        plan(await runOnce(lease))
      } while (again && failures === 0)
    } finally {
      // At once: whoever asks after the last look must not be told that it still runs.
      running = undefined
    }
  }

  /** Answers with when to run again. */
  async function runOnce(lease: Lease): Promise<number> {
    const began = needs.monotonic()
    const record = recorder(app, leases, lease, duty.name, everyMs)
    try {
      const status = await app.tracer.root(`duty ${duty.name}`, { 'pinfold.duty': duty.name }, () =>
        duty.run(app, lease),
      )
      await record('ok', status)
      failures = 0
      log.ran(needs.monotonic() - began, status, lease.fence)
      return everyMs
    } catch (error) {
      if (signal.aborted) return everyMs
      if (error instanceof LeaseLost) {
        log.lost()
        // It may be ours still, or again.
        return leases.find(duty.name) ? Math.min(retryMs, everyMs) : everyMs
      }
      failures++
      log.failed(error, failures)
      await record('failed', {}).catch(() => {}) // The log has it, and the database may be what fails.
      return Math.min(retryMs * 2 ** (failures - 1), everyMs)
    }
  }

  const wake = (): void => {
    // One that fails keeps its wait, however often it is asked.
    if (failures === 0) void run()
  }
  const unsubscribe = duty.wake?.(app).subscribe(wake)
  return {
    duty,
    wake,
    first: run,
    taken({ end, result }) {
      const age = app.skew.now().getTime() - Date.parse(end)
      plan(result === 'ok' && age >= 0 ? Math.max(everyMs - age, 0) : 0)
    },
    async close() {
      unsubscribe?.()
      clearTimeout(timer)
      await running
    },
  }
}

const didAnything = (status: DutyStatus): boolean => Object.values(status).some((count) => count !== 0)

/** How often the log may say that a job fails. */
const failedLineMs = 60_000

/** One line for a run that did something, one a minute for those that failed, and the metrics of all of them. */
function createDutyLog({ log, metrics: { duties: metrics } }: App, duty: string, monotonic: () => number) {
  let said: number | undefined
  /** Runs that have failed since the last line, and since the job last worked. */
  const failed = { unsaid: 0, since: 0, isSaid: false }
  function works(): void {
    if (failed.isSaid) log.info('duty works again', { duty, failures: failed.since })
    Object.assign(failed, { since: 0, isSaid: false })
  }
  metrics.failures.set({ duty }, 0)
  for (const result of ['ok', 'failed']) metrics.runs.inc({ duty, result }, 0)
  return {
    ran(ms: number, status: DutyStatus, fence: number): void {
      metrics.runs.inc({ duty, result: 'ok' })
      metrics.failures.set({ duty }, 0)
      metrics.lastSuccess.set({ duty }, Date.now() / 1000)
      metrics.lastDuration.set({ duty }, ms / 1000)
      works()
      if (!didAnything(status)) return
      const fields = { duty, ms: Math.round(ms), ...status }
      // What every node does each second would hide the rest.
      if (fence === 0) log.debug('duty ran', fields)
      else log.info('duty ran', fields)
    },
    lost(): void {
      metrics.runs.inc({ duty, result: 'lost' })
      log.info('duty left to another node', { duty })
    },
    failed(error: unknown, failures: number): void {
      metrics.runs.inc({ duty, result: 'failed' })
      metrics.failures.set({ duty }, failures)
      failed.unsaid++
      failed.since++
      if (said !== undefined && monotonic() - said < failedLineMs) return
      log.error('duty failed', { duty, failures, count: failed.unsaid, error })
      said = monotonic()
      Object.assign(failed, { unsaid: 0, isSaid: true })
    },
  }
}

async function startLong(
  app: App,
  duty: LongDuty,
  { node, monotonic, server }: { node: string; monotonic: () => number; server: WorkersOptions['server'] },
): Promise<RunningDuty> {
  const log = createDutyLog(app, duty.name, monotonic)
  let failures = 0
  return duty.start(app, {
    node,
    monotonic,
    url: server?.url ?? '',
    ran() {
      failures = 0
      log.ran(0, {}, 0)
    },
    failed(error) {
      failures++
      log.failed(error, failures)
    },
  })
}

/** Warns when the clock begins to differ, not each time it is looked at. */
function clockWarning({ log }: App): (offsetMs: number) => void {
  let differed = false
  return (offsetMs) => {
    const differs = Math.abs(offsetMs) > 1000
    if (differs && !differed) log.warn('clock differs from that of the database', { offsetMs })
    differed = differs
  }
}
