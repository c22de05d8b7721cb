// Runner of background jobs. A job runs at its interval and after its signal, and never twice at the same time on one node. A job
// for one node at a time waits for its lease. Jobs have no timers of their own.
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

/** Job that deletes servers without a heartbeat for a day. */
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

/**
 * Background jobs of an operator command that opens the data folder itself. The command needs only the jobs whose work it can
 * request.
 */
export const jobsOfCommands: readonly Job[] = [collectBlobs]

export type Workers = {
  /** ID of this process among those that share the database. */
  node: string
  /**
   * Stops running jobs at their next safe point, and releases all leases. Deliveries in flight get `graceMs` milliseconds to
   * finish. The default is that of requests in flight.
   */
  close(graceMs?: number): Promise<void>
}

export type WorkersOptions = {
  jobs?: readonly (Job | LongJob)[]
  /** URLs of a server process: for clients, and for callers on this machine. */
  server?: { url: string; localUrl: string }
  /** Called once other servers can see this node, before any job runs. If it throws, the start fails. */
  mayServe?: () => Promise<void>
  monotonic?: () => number
  /**
   * Delay before a failed job runs again, in milliseconds. The delay doubles with each failure, up to the interval of the job.
   */
  retryMs?: number
}

/** Starts the background jobs. Resolves when all have been started, before they have finished a run. */
export async function startWorkers(app: App, options: WorkersOptions = {}): Promise<Workers> {
  const { server, mayServe, monotonic = () => performance.now(), retryMs = 1000 } = options
  const list = options.jobs ?? jobs
  const node = randomBytes(8).toString('hex')
  // Adds the node to all log lines, since the lines of several servers are often read together.
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
    // With only one server, other jobs do not need the heartbeat.
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
  // Sends a heartbeat first, so that the node is registered before it takes a lease.
  await runners.get(beat.name)!.first()
  for (const { job, first } of runners.values()) if (job.runsOn === 'every node' && job !== beat) void first()
  const started: RunningJob[] = []
  for (const job of list) if (!('run' in job)) started.push(await startLong(app, job, { node, monotonic, server }))
  app.log.debug('background jobs started', { node })

  return {
    node,
    async close(graceMs = app.config.drainMs) {
      stop.abort(new Error('the server stops'))
      await Promise.all([...runners.values(), ...started].map(async (one) => one.close(graceMs)))
      await leases.release().catch((error: unknown) => app.log.warn('releasing leases failed', { error }))
      for (const name of runners.keys()) showLease(name)
    },
  }
}

/** Wakes jobs after commits of this process that may give them work. */
function wakeOnCommit({ db }: App, runners: readonly Runner[]): void {
  const waiting = runners.filter(({ job }) => job.wakeOn)
  // Keeps the async context of the start, since a job is not part of the request that has caused it.
  const listener = AsyncLocalStorage.bind((changes: ReadonlySet<Change>) => {
    for (const { job, wake } of waiting) if (job.wakeOn!.some((one) => changes.has(one))) wake()
  })
  db.onCommit(listener)
}

/** Sends heartbeats while `ask` runs. Without them, other servers might take this node for dead. */
async function askWithHeartbeats(leases: Leases, everyMs: number, ask: () => Promise<void>): Promise<void> {
  await leases.announce()
  const asked = new AbortController()
  const announcing = (async () => {
    for await (const _ of setInterval(everyMs, undefined, { signal: asked.signal })) await leases.announce()
  })().catch(() => {}) // A failure here means that `ask` has finished, or that the database is unavailable. In that case `ask` fails too.
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
  /** Runs the job as soon as possible. Does nothing while the job is failing. */
  wake(): void
  /** Runs the job now. Resolves after the run. */
  first(): Promise<void>
  /** Call it when this node has taken the lease. Plans the next run for the end of the interval since the last one. */
  taken(last: LastRun): void
  close(): Promise<void>
}

type RunnerNeeds = { leases: Leases; retryMs: number; monotonic: () => number; signal: AbortSignal }

/** Returns a function that records the result of a run that starts now. Does not record frequent runs without work. */
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
    // Starts in a microtask, so that `running` is set before the run can end.
    running ??= Promise.resolve().then(runAll)
    return running
  }

  async function runAll(): Promise<void> {
    clearTimeout(timer)
    try {
      do {
        again = false
        const lease = job.runsOn === 'every node' ? leases.everyNode : leases.find(job.name)
        // Without the lease, plans no further run. The next owner of the lease runs the job.
        if (!lease || signal.aborted) return
        plan(await runOnce(lease))
      } while (again && failures === 0)
    } finally {
      // Cleared right after the last check of `again`. Otherwise a call in between would set `again` without any effect.
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
        // The node may still have the lease, or may have taken it again.
        return leases.find(job.name) ? Math.min(retryMs, everyMs) : everyMs
      }
      failures++
      log.failed(error, failures)
      await record('failed', {}).catch(() => {}) // The failure is in the log. If the database has caused it, recording fails too.
      return Math.min(retryMs * 2 ** (failures - 1), everyMs)
    }
  }

  const wake = (): void => {
    // Signals do not shorten the delay of a failing job.
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

/** Logs one line for each run with work, and at most one line a minute for failed runs. Also updates the metrics. */
function createJobLog({ log, metrics: { jobs: metrics } }: App, duty: string, monotonic: () => number) {
  let lastLogged: number | undefined
  /** Number of failed runs since the last line, and since the last success. */
  const failed = { unlogged: 0, since: 0, isLogged: false }
  function works(): void {
    if (failed.isLogged) log.info('background job succeeds again', { duty, failures: failed.since })
    Object.assign(failed, { since: 0, isLogged: false })
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
      // Uses the level debug for frequent runs on every node, since their lines would hide others.
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
      failed.unlogged++
      failed.since++
      if (lastLogged !== undefined && monotonic() - lastLogged < failedLineMs) return
      log.error('background job failed', { duty, failures, count: failed.unlogged, error })
      lastLogged = monotonic()
      Object.assign(failed, { unlogged: 0, isLogged: true })
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

/** Returns a function that warns when the clock starts to differ. Does not warn again while the clock still differs. */
function clockWarning({ log }: App): (offsetMs: number) => void {
  let differed = false
  return (offsetMs) => {
    const differs = Math.abs(offsetMs) > 1000
    if (differs && !differed) log.warn('clock differs from the clock of the database', { offsetMs })
    differed = differs
  }
}
