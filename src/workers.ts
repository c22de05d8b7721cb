// Background jobs and their runner. A job runs by its interval and by its signal, and never twice at once on a node. Jobs for one
// node at a time wait for their lease. Nothing else has timers for jobs.
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setInterval } from 'node:timers/promises'
import type { App } from './app.ts'
import { createLeases, type LastRun, type Lease, LeaseLost, type Leases } from './db/leases.ts'
import { deleteSilentNodes } from './db/nodes.ts'
import type { Change } from './db/sql.ts'
import { domains } from './domains/domains.ts'
import { collectBlobs } from './domains/registry/blobs/collect-blobs.job.ts'
import type { Job, JobStatus, LongJob, RunningJob } from './job.ts'
import { version } from './version.ts'

const dayMs = 24 * 60 * 60_000

/** Deletes servers without a heartbeat for a day. */
const sweepNodes: Job = {
  name: 'nodes.sweep',
  everyMs: 60 * 60_000,
  runsOn: 'one node',
  async run({ skew }, lease) {
    const before = new Date(skew.now().getTime() - dayMs).toISOString()
    return { nodes: await lease.inBatches((tx) => deleteSilentNodes(tx, before)) }
  },
}

/** All background jobs of a server. */
export const jobs: readonly (Job | LongJob)[] = [...domains.flatMap((domain) => domain.jobs), sweepNodes]

/** Background jobs of an operator command that opens the data folder itself: only those that it can request. */
export const jobsOfCommands: readonly Job[] = [collectBlobs]

export type Workers = {
  /** ID of this process among those that share the database. */
  node: string
  /**
   * Stops running jobs at the next step from which they can continue, and releases all leases. Deliveries in flight have
   * `graceMs`; by default as long as requests in flight.
   */
  close(graceMs?: number): Promise<void>
}

export type WorkersOptions = {
  jobs?: readonly (Job | LongJob)[]
  /** URLs of a server process: for clients, and for callers on this machine. */
  server?: { url: string; localUrl: string }
  /** Called once other servers can see this node, and before it does anything. If it throws, the start fails. */
  mayServe?: () => Promise<void>
  monotonic?: () => number
  /** Delay before a failed job runs again, in milliseconds. Doubles each time up to the job's interval. */
  retryMs?: number
}

/** Starts the background jobs. Resolves once each has been started, not once it has run. */
export async function startWorkers(app: App, options: WorkersOptions = {}): Promise<Workers> {
  const { server, mayServe, monotonic = () => performance.now(), retryMs = 1000 } = options
  const list = options.jobs ?? jobs
  const node = randomBytes(8).toString('hex')
  // Lines of several servers are read together.
  if (app.db.shared) app.log.mark({ node })
  const stop = new AbortController()
  const repeated = list.filter((one): one is Job => 'run' in one)
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
  const beat: Job = {
    name: 'nodes.beat',
    // Without other servers, nobody needs the heartbeat.
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
  app.metrics.jobs.names.declare([beat, ...list].map(({ name }) => name))
  const showLease = (name: string): void => {
    const { runsOn } = runners.get(name)!.job
    if (runsOn === 'one node') app.metrics.jobs.leaseHeld.set({ duty: name }, leases.find(name) ? 1 : 0)
  }
  for (const job of [beat, ...repeated]) {
    runners.set(job.name, createRunner(app, job, { leases, retryMs, monotonic, signal: stop.signal }))
  }
  wakeOnCommit(app, [...runners.values()])
  if (mayServe) await askWithHeartbeats(leases, app.config.leaseMs / 4, mayServe)
  // First, so that the node is registered before it owns anything.
  await runners.get(beat.name)!.first()
  for (const { job, first } of runners.values()) if (job.runsOn === 'every node' && job !== beat) void first()
  const started: RunningJob[] = []
  for (const job of list) if (!('run' in job)) started.push(await startLong(app, job, { node, monotonic, server }))
  app.log.debug('background jobs started', { node })

  return {
    node,
    async close(graceMs = app.config.drainMs) {
      stop.abort(new Error('the server stops'))
      await Promise.all([...runners.values(), ...started].map((one) => one.close(graceMs)))
      await leases.release().catch((error: unknown) => app.log.warn('releasing leases failed', { error }))
      for (const name of runners.keys()) showLease(name)
    },
  }
}

/** Runs jobs after commits of this process that give them work. */
function wakeOnCommit({ db }: App, runners: readonly Runner[]): void {
  const waiting = runners.filter(({ job }) => job.wakeOn)
  // A job that a request has started is not part of that request.
  const listener = AsyncLocalStorage.bind((changes: ReadonlySet<Change>) => {
    for (const { job, wake } of waiting) if (job.wakeOn!.some((one) => changes.has(one))) wake()
  })
  db.onCommit(listener)
}

/** Sends heartbeats while `ask` runs, since it may take longer than other servers wait for one. */
async function askWithHeartbeats(leases: Leases, everyMs: number, ask: () => Promise<void>): Promise<void> {
  await leases.announce()
  const asked = new AbortController()
  const announcing = (async () => {
    for await (const _ of setInterval(everyMs, undefined, { signal: asked.signal })) await leases.announce()
  })().catch(() => {}) // Either `ask` has finished, or the database is unavailable, which `ask` reports.
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
  job: Job
  /** Runs the job soon, unless it is failing. */
  wake(): void
  /** Runs the job now. Resolves once it has run. */
  first(): Promise<void>
  /** Called with the lease: runs the job as soon as the interval since the last run is over. */
  taken(last: LastRun): void
  close(): Promise<void>
}

type RunnerNeeds = { leases: Leases; retryMs: number; monotonic: () => number; signal: AbortSignal }

/** Records the result of a run that starts now. Frequent runs without work are not recorded. */
function recorder({ skew }: App, leases: Leases, lease: Lease, name: string, everyMs: number) {
  const now = () => skew.now().toISOString()
  const start = now()
  return async (result: string, status: JobStatus): Promise<void> => {
    if (lease.fence === 0 || (everyMs < 60_000 && result === 'ok' && !didAnything(status))) return
    await leases.record(name, { start, end: now(), result, status: JSON.stringify(status) })
  }
}

function createRunner(app: App, job: Job, needs: RunnerNeeds): Runner {
  const { leases, retryMs, signal } = needs
  const everyMs = typeof job.everyMs === 'function' ? job.everyMs(app) : job.everyMs
  const log = createJobLog(app, job.name, needs.monotonic)
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
    // Starts a moment later, so that a job that ends at once does not end before it counts as running.
    running ??= Promise.resolve().then(runAll)
    return running
  }

  async function runAll(): Promise<void> {
    clearTimeout(timer)
    try {
      do {
        again = false
        const lease = job.runsOn === 'every node' ? leases.everyNode : leases.find(job.name)
        // Without the lease nothing is planned; the next owner starts anew.
        if (!lease || signal.aborted) return
        plan(await runOnce(lease))
      } while (again && failures === 0)
    } finally {
      // Set at once: a caller after the last check must not see the job as running.
      running = undefined
    }
  }

  /** Runs the job. Returns the delay until the next run, in milliseconds. */
  async function runOnce(lease: Lease): Promise<number> {
    const began = needs.monotonic()
    const record = recorder(app, leases, lease, job.name, everyMs)
    try {
      const status = await app.tracer.root(`job ${job.name}`, { 'pinfold.job': job.name }, () => job.run(app, lease))
      await record('ok', status)
      failures = 0
      log.ran(needs.monotonic() - began, status, lease.fence)
      return everyMs
    } catch (error) {
      if (signal.aborted) return everyMs
      if (error instanceof LeaseLost) {
        log.lost()
        // The node may still own the lease, or own it again.
        return leases.find(job.name) ? Math.min(retryMs, everyMs) : everyMs
      }
      failures++
      log.failed(error, failures)
      await record('failed', {}).catch(() => {}) // The log has the failure, and the database may be its cause.
      return Math.min(retryMs * 2 ** (failures - 1), everyMs)
    }
  }

  const wake = (): void => {
    // A failing job keeps its delay, whatever the number of signals.
    if (failures === 0) void run()
  }
  const unsubscribe = job.wake?.(app).subscribe(wake)
  return {
    job,
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

const didAnything = (status: JobStatus): boolean => Object.values(status).some((count) => count !== 0)

/** Shortest time between two log lines about a failing job, in milliseconds. */
const failedLineMs = 60_000

/** Logs a line for each run that did something, at most one a minute for failed runs, and updates the metrics. */
function createJobLog({ log, metrics: { jobs: metrics } }: App, duty: string, monotonic: () => number) {
  let said: number | undefined
  /** Failed runs since the last line, and since the last success. */
  const failed = { unsaid: 0, since: 0, isSaid: false }
  function works(): void {
    if (failed.isSaid) log.info('background job succeeds again', { duty, failures: failed.since })
    Object.assign(failed, { since: 0, isSaid: false })
  }
  metrics.failures.set({ duty }, 0)
  for (const result of ['ok', 'failed']) metrics.runs.inc({ duty, result }, 0)
  return {
    ran(ms: number, status: JobStatus, fence: number): void {
      metrics.runs.inc({ duty, result: 'ok' })
      metrics.failures.set({ duty }, 0)
      metrics.lastSuccess.set({ duty }, Date.now() / 1000)
      metrics.lastDuration.set({ duty }, ms / 1000)
      works()
      if (!didAnything(status)) return
      const fields = { duty, ms: Math.round(ms), ...status }
      // Frequent runs on every node would hide other lines.
      if (fence === 0) log.debug('background job ran', fields)
      else log.info('background job ran', fields)
    },
    lost(): void {
      metrics.runs.inc({ duty, result: 'lost' })
      log.info('background job was taken over by another server', { duty })
    },
    failed(error: unknown, failures: number): void {
      metrics.runs.inc({ duty, result: 'failed' })
      metrics.failures.set({ duty }, failures)
      failed.unsaid++
      failed.since++
      if (said !== undefined && monotonic() - said < failedLineMs) return
      log.error('background job failed', { duty, failures, count: failed.unsaid, error })
      said = monotonic()
      Object.assign(failed, { unsaid: 0, isSaid: true })
    },
  }
}

async function startLong(
  app: App,
  job: LongJob,
  { node, monotonic, server }: { node: string; monotonic: () => number; server: WorkersOptions['server'] },
): Promise<RunningJob> {
  const log = createJobLog(app, job.name, monotonic)
  let failures = 0
  return job.start(app, {
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

/** Returns a function that warns when the clock starts to differ, not each time it is checked. */
function clockWarning({ log }: App): (offsetMs: number) => void {
  let differed = false
  return (offsetMs) => {
    const differs = Math.abs(offsetMs) > 1000
    if (differs && !differed) log.warn('clock differs from the clock of the database', { offsetMs })
    differed = differs
  }
}
