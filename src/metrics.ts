import { STATUS_CODES } from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { type TrashDepth, trashDepth } from '#domains/registry/blobs/locations.store.ts'
import { operations, results } from './blobs/operations.ts'
import { type Db, retriedCommands, retryReasons } from './db/sql.ts'
import { attemptResults } from './domains/events/delivery/deliveries.model.ts'
import { type DepthState, oldestUnrouted, type QueueDepth, readDepth } from './domains/events/delivery/depth.store.ts'
import { storedEcosystems } from './domains/scanning/lists/lists.store.ts'
import { listSources, type StoredSource } from './domains/scanning/records/records.store.ts'
import { type Counted, labelled, openMetricsRegistry, type Shown, type Timed, type Traced } from './labelled-metrics.ts'
import { codes } from './lib/errors.ts'
import { ClosedSet } from './lib/labels/closed-set.ts'
import { ociCodes } from './oci/errors.ts'
import { alone, atOnce, inCommon, type NodeView } from './shared-metrics.ts'
import { automatic, neededSources, withNeeded } from './sources/definitions.ts'

/** Metrics of `/metrics`. Label values come from fixed sets, and never contain names, uids or other data of users. */
export type Metrics = {
  registry: Registry
  /** Duration of requests in seconds, by entry point (`transport`), method, and google.rpc code or HTTP status. */
  requests: Traced<'transport' | 'method' | 'code'>
  /** The same metrics in the OpenMetrics format, with trace exemplars. Undefined without tracing. */
  openMetrics: Registry | undefined
  /** Names of entry points and of their methods. Each entry point declares its own. */
  entryPoints: { transports: ClosedSet; methods: ClosedSet }
  inFlight: Gauge
  deliveryAttempts: Counted<'result'>
  /** Refused registry requests, by action (pull, push, delete) and error code of the distribution specification. */
  registryRefusals: Counted<'action' | 'code'>
  connectionsRefused: Counter
  /** Requests that were refused because their caller was over budget. */
  budgetRefusals: Counted<'transport'>
  /** Bytes of request bodies in memory. */
  bodyBytes: Gauge
  /** Requests that were refused because too many bytes of bodies were in memory. */
  bodyRefusals: Counted<'transport'>
  /** Sets the function that returns the main-thread time of all requests. */
  watchBudgets(spentMs: () => number): void
  gateErrors: Counter
  /** Promise rejections that no code handled. Each is a bug. */
  unhandledRejections: Counter
  /** Registry items, such as counts of pulls, that were dropped because a buffer in memory was full. */
  registryDropped: Counted<'what'>
  /** Time from an event to the first attempt of its delivery, in seconds. */
  deliveryLatency: Histogram
  jobs: JobMetrics
  /** Duration of requests to the blob bucket in seconds, by operation and result. */
  blobRequests: Timed<'operation' | 'result'>
  /** Reads of blobs whose content is missing in the blob store. */
  blobsMissing: Counter
  /** Sets the function that returns the difference of our clock to that of the database, in milliseconds. */
  watchClock(offsetMs: () => number): void
  /** Sets the function that returns whether the blob store is available. */
  watchBlobStore(isUp: () => boolean): void
  /** Sets the function that returns the number of transparency logs whose signing is suspended. */
  watchLedgerLogs(suspended: () => number): void
}

export type JobMetrics = {
  /** Names of the background jobs. `workers.ts` declares them. */
  names: ClosedSet
  runs: Counted<'duty' | 'result'>
  /** Time of the last success, in seconds since 1970. */
  lastSuccess: Shown<'duty'>
  /** Duration of the last run, in seconds. */
  lastDuration: Shown<'duty'>
  /** Number of consecutive failures. */
  failures: Shown<'duty'>
  leaseHeld: Shown<'duty'>
}

function commonGauge(
  sight: NodeView,
  about: { name: string; help: string; registers: Registry[] },
  read: () => Promise<number>,
): void {
  const collect = async function (this: Gauge): Promise<void> {
    const value = await inCommon(sight, read)
    if (value === undefined) this.remove()
    else this.set(value)
  }
  new Gauge({ ...about, collect })
}

/** Creates the metrics. `sources` are the names of the vulnerability data sources that have their own labels. */
export function createMetrics(db: Db, sources: readonly string[], sight: NodeView = alone, isTraced = false): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const words = {
    transactions: 'Requested database transactions',
    commits: 'Commits; several transactions can share one',
    refused: 'Statements and transactions refused because all connections or target rows were in use',
  }
  for (const [name, help] of Object.entries(words)) {
    const collect = function (this: Counter): void {
      this.reset()
      this.inc(db.stats()[name as keyof typeof words])
    }
    new Counter({ name: `pinfold_db_${name}_total`, help, registers: [registry], collect })
  }
  databaseRetries(db, registry)
  trashMetrics(db, registry, sight)
  sourceMetrics(db, registry, { names: sources, ...sight })
  const entryPoints = { transports: new ClosedSet(), methods: new ClosedSet(['none']) }
  const code = new ClosedSet(['OK', ...Object.keys(codes), ...Object.keys(STATUS_CODES), '499'])
  return {
    registry,
    entryPoints,
    get openMetrics() {
      return isTraced ? asOpenMetrics(registry) : undefined
    },
    requests: labelled({ transport: entryPoints.transports, method: entryPoints.methods, code }).histogram(
      {
        name: 'pinfold_request_duration_seconds',
        help: 'Duration of requests, by entry point',
        buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
        registers: [registry],
      },
      isTraced,
    ),
    inFlight: new Gauge({
      name: 'pinfold_requests_in_flight',
      help: 'Requests in progress, without those for documents such as this one',
      registers: [registry],
    }),
    ...deliveryMetrics(db, registry, sight),
    registryRefusals: refusals(registry),
    registryDropped: dropped(registry),
    connectionsRefused: new Counter({
      name: 'pinfold_connections_refused_total',
      help: 'Connections that were closed at once, because the client address had too many',
      registers: [registry],
    }),
    ...budgetMetrics(registry, entryPoints.transports),
    ...bodyMetrics(registry, entryPoints.transports),
    gateErrors: new Counter({
      name: 'pinfold_gate_errors_total',
      help: 'Errors of admission policies, which then denied nothing',
      registers: [registry],
    }),
    unhandledRejections: new Counter({
      name: 'pinfold_unhandled_rejections_total',
      help: 'Promise rejections that no code handled; each is a bug of the server',
      registers: [registry],
    }),
    jobs: jobMetrics(registry),
    watchClock(offsetMs) {
      const help = 'Clock of the database minus clock of this server'
      const about = { name: 'pinfold_clock_offset_seconds', help, registers: [registry] }
      commonGauge(alone, about, async () => offsetMs() / 1000)
    },
    ...blobMetrics(registry),
    watchLedgerLogs(suspended) {
      const help = 'Transparency logs for which signing is suspended until the operator checks them'
      const about = { name: 'pinfold_ledger_logs_suspended', help, registers: [registry] }
      commonGauge(alone, about, async () => suspended())
    },
  }
}

function budgetMetrics(registry: Registry, transports: ClosedSet): Pick<Metrics, 'budgetRefusals' | 'watchBudgets'> {
  return {
    budgetRefusals: labelled({ transport: transports }).counter({
      name: 'pinfold_budget_refusals_total',
      help: 'Requests refused because their caller exceeded its budget while others waited',
      registers: [registry],
    }),
    watchBudgets(spentMs) {
      const help = 'Main-thread time of all requests'
      const collect = function (this: Counter): void {
        this.reset()
        this.inc(spentMs() / 1000)
      }
      new Counter({ name: 'pinfold_request_thread_seconds_total', help, registers: [registry], collect })
    },
  }
}

function bodyMetrics(registry: Registry, transports: ClosedSet): Pick<Metrics, 'bodyBytes' | 'bodyRefusals'> {
  return {
    bodyBytes: new Gauge({
      name: 'pinfold_request_body_bytes',
      help: 'Bytes of request bodies and gRPC messages in memory, with the buffers of blob uploads',
      registers: [registry],
    }),
    bodyRefusals: labelled({ transport: transports }).counter({
      name: 'pinfold_request_body_refusals_total',
      help: 'Requests refused because too many bytes of request bodies were in memory',
      registers: [registry],
    }),
  }
}

function databaseRetries(db: Db, registry: Registry): void {
  const sets = { command: new ClosedSet([...retriedCommands]), reason: new ClosedSet([...retryReasons]) }
  const about = {
    name: 'pinfold_db_retries_total',
    help: 'Retries of transactions, by failed command and reason: a conflict or a violated constraint',
    registers: [registry],
  }
  labelled(sets).counter(about, (counter) => {
    const { again } = db.stats()
    for (const command of retriedCommands) {
      for (const reason of retryReasons) counter.inc({ command, reason }, again.get(`${command} ${reason}`) ?? 0)
    }
  })
}

/** Maximum number of waiting image contents that are counted. The metric is never higher. */
const mostTrash = 100_000

function trashMetrics(db: Db, registry: Registry, sight: NodeView): void {
  // All gauges of a scrape are collected at once, so they share one read of the database.
  let reading: Promise<TrashDepth> | undefined
  const read = (): Promise<TrashDepth> => {
    reading ??= trashDepth(db, mostTrash).finally(() => {
      reading = undefined
    })
    return reading
  }
  const gauge = (name: string, help: string, value: (depth: TrashDepth) => number): void => {
    commonGauge(sight, { name, help, registers: [registry] }, async () => value(await read()))
  }
  gauge(
    'pinfold_blob_trash',
    `Unreferenced blobs that wait for deletion from the store, at most ${mostTrash}`,
    ({ count }) => count,
  )
  gauge(
    'pinfold_blob_trash_overdue_seconds',
    'Time since the oldest unreferenced blob should have been deleted',
    ({ firstDue }) => (firstDue === '' ? 0 : Math.max(0, sight.clock().getTime() - Date.parse(firstDue)) / 1000),
  )
}

function asOpenMetrics(registry: Registry): Registry {
  const open = openMetricsRegistry()
  for (const { name } of registry.getMetricsAsArray()) open.registerMetric(registry.getSingleMetric(name)!)
  return open
}

function blobMetrics(registry: Registry): Pick<Metrics, 'blobRequests' | 'blobsMissing' | 'watchBlobStore'> {
  const sets = { operation: new ClosedSet([...operations]), result: new ClosedSet([...results]) }
  return {
    blobRequests: labelled(sets).histogram({
      name: 'pinfold_blob_store_request_duration_seconds',
      help: 'Duration of requests to the bucket, for each attempt',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers: [registry],
    }),
    blobsMissing: new Counter({
      name: 'pinfold_blob_missing_total',
      help: 'Requests for a blob whose content is missing in the blob store',
      registers: [registry],
    }),
    watchBlobStore(isUp) {
      const help = '1 if the last request to the blob store succeeded, otherwise 0'
      const about = { name: 'pinfold_blob_store_up', help, registers: [registry] }
      commonGauge(alone, about, async () => (isUp() ? 1 : 0))
    },
  }
}

/** Metrics of vulnerability data sources. A source has none before its first read. */
function sourceMetrics(db: Db, registry: Registry, { names, ...sight }: NodeView & { names: readonly string[] }): void {
  const gauge = (name: string, help: string, value: (one: StoredSource) => number | undefined): void => {
    const about = { name: `pinfold_vulnerability_source_${name}`, help, registers: [registry] }
    const source = new ClosedSet(names)
    labelled({ source }).gauge(about, async (shown) => {
      const { all, read } = (await inCommon(sight, readSources)) ?? { all: [], read: [] }
      // The names of ecosystems are in the code, so their number is limited.
      source.declare(read)
      shown.reset()
      for (const one of all) {
        const found = read.includes(one.name) ? value(one) : undefined
        if (found !== undefined) shown.set({ source: one.name }, found)
      }
    })
  }
  const readSources = atOnce(async () => {
    const needed = names.includes(automatic) ? neededSources(await storedEcosystems(db)) : []
    return { all: await listSources(db), read: withNeeded(names, needed) }
  })
  gauge('age_seconds', 'Time since the data source was last read completely', ({ fetchTime }) =>
    fetchTime === '' ? undefined : (sight.clock().getTime() - Date.parse(fetchTime)) / 1000,
  )
  gauge('failed', '1 if the last read of the source failed, else 0', ({ error }) => (error === '' ? 0 : 1))
}

function jobMetrics(registry: Registry): JobMetrics {
  const names = new ClosedSet()
  const gauge = (name: string, help: string) =>
    labelled({ duty: names }).gauge({ name: `pinfold_duty_${name}`, help, registers: [registry] })
  return {
    names,
    runs: labelled({ duty: names, result: new ClosedSet(['ok', 'failed', 'lost']) }).counter({
      name: 'pinfold_duty_runs_total',
      help: 'Runs of background jobs, by result: ok, failed, or lost to another server',
      registers: [registry],
    }),
    lastSuccess: gauge('last_success_timestamp_seconds', 'Last success of the background job on this server'),
    lastDuration: gauge('last_duration_seconds', 'Duration of the last run of the background job'),
    failures: gauge('failures', 'Number of failures of the background job in a row'),
    leaseHeld: gauge('lease_held', '1 if this server holds the lease of the background job'),
  }
}

function refusals(registry: Registry): Metrics['registryRefusals'] {
  const sets = { action: new ClosedSet(['pull', 'push', 'delete']), code: new ClosedSet(Object.keys(ociCodes)) }
  return labelled(sets).counter({
    name: 'pinfold_registry_refusals_total',
    help: 'Requests refused by the registry, by action and error code, without those that lacked a token',
    registers: [registry],
  })
}

function dropped(registry: Registry): Metrics['registryDropped'] {
  const words = ['pull_event', 'refused_push_event', 'pull_count']
  const counter = labelled({ what: new ClosedSet(words) }).counter({
    name: 'pinfold_registry_dropped_total',
    help: 'Dropped events of pulls and refused pushes, and pulls that were not counted',
    registers: [registry],
  })
  for (const what of words) counter.inc({ what }, 0)
  return counter
}

function deliveryMetrics(
  db: Db,
  registry: Registry,
  sight: NodeView,
): Pick<Metrics, 'deliveryAttempts' | 'deliveryLatency'> {
  const depth = {
    waiting:
      'Pending deliveries by state: ready, blocked (the endpoint fails), paused, or given_up. Deliveries without an attempt are counted up to 1000 for each of 100 subscriptions, and up to 10000 in all',
    oldest: 'Age of the oldest pending delivery',
  }
  const read = atOnce(() => readDepth(sight.wants ?? (() => true), db, sight.clock().getTime()))
  const states: readonly DepthState[] = ['ready', 'blocked', 'paused', 'given_up']
  const gauge = (name: string, help: string, value: (one: QueueDepth) => number): void => {
    labelled({ state: new ClosedSet(states) }).gauge({ name, help, registers: [registry] }, async (shown) => {
      const depths = await inCommon(sight, read)
      // Removes values of the last scrape, since another server may show them now.
      shown.reset()
      if (depths) for (const [state, one] of Object.entries(depths)) shown.set({ state }, value(one))
    })
  }
  gauge('pinfold_deliveries_waiting', depth.waiting, ({ count }) => count)
  gauge('pinfold_deliveries_oldest_seconds', depth.oldest, ({ ageSeconds }) => ageSeconds)
  const unrouted = {
    name: 'pinfold_events_unrouted_oldest_seconds',
    help: 'Age of the oldest event that has not been routed to its subscriptions yet',
    registers: [registry],
  }
  commonGauge(sight, unrouted, async () => {
    const oldest = await oldestUnrouted(db)
    return oldest === undefined ? 0 : Math.max(0, sight.clock().getTime() - Date.parse(oldest)) / 1000
  })
  return {
    deliveryAttempts: labelled({ result: new ClosedSet(attemptResults) }).counter({
      name: 'pinfold_delivery_attempts_total',
      help: 'Delivery attempts, by result',
      registers: [registry],
    }),
    deliveryLatency: new Histogram({
      name: 'pinfold_delivery_latency_seconds',
      help: 'Time from an event to its first delivery attempt',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3600],
      registers: [registry],
    }),
  }
}
