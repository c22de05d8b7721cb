import { performance } from 'node:perf_hooks'
import { formatFor } from '#lib/terminal/log-text.ts'
import { buildEventTable } from './api/event-table.ts'
import { eventBodies, services } from './api/services.ts'
import type { App, Fleet, Ground, Parts } from './app.ts'
import { blobLocationOf, openBlobs } from './blobs/open.ts'
import type { Observe } from './blobs/operations.ts'
import { createAwsCallers } from './clouds/amazon-callers.ts'
import { createClouds } from './clouds/clouds.ts'
import { type Config, vendorOf } from './config.ts'
import { type Clocks, createSkew } from './db/skew.ts'
import type { Db } from './db/sql.ts'
import { isUnavailable } from './db/unavailable.ts'
import { domains } from './domains/domains.ts'
import type { Wanted } from './domains/events/delivery/depth.store.ts'
import { wants } from './domains/events/routing/type-patterns.ts'
import { installBuiltInRoles } from './domains/iam/roles/roles.service.ts'
import { signCloudAssertion } from './issuer/cloud-assertion.ts'
import type { Keyring } from './issuer/keyring.ts'
import { createOutsideIssuers } from './issuer/outside-issuers.ts'
import { createProviderDirectory } from './issuer/people/directory.ts'
import { signScannerToken } from './issuer/scanner-token.ts'
import { createFailureLog } from './lib/batches/failure-log.ts'
import { createBudgets } from './lib/budgets/budgets.ts'
import { createThreadTime } from './lib/budgets/thread-time.ts'
import { createBuffers } from './lib/buffers.ts'
import { AppError } from './lib/errors.ts'
import { createLogger, type Logger } from './lib/log.ts'
import { clientRanges } from './lib/net/client-ranges.ts'
import { createDns } from './lib/net/dns.ts'
import { createLimits, type LimitKind } from './lib/net/limits.ts'
import { createOutgoing, type Outgoing } from './lib/net/outgoing.ts'
import { allowedAddresses, allPrivateAddresses } from './lib/net/private-addresses.ts'
import { bindBlobStore } from './maintenance/bind-blobs.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { openDatabase } from './open-database.ts'
import { keyringOf } from './open-issuer.ts'
import { clearOnCommit, resources, withHooks } from './resources.ts'
import type { NodeView } from './shared-metrics.ts'
import { traceDatabase } from './trace-database.ts'
import { noTracer, type Tracer } from './tracing/tracer.ts'
import { version } from './version.ts'

/**
 * Opens all parts of the application, in order. `close` closes them in reverse order. If a step fails, the parts opened so far
 * are closed. `monotonic` returns milliseconds for the age of cache entries. `machine` has the clocks that are compared with that
 * of the database. `ours` is a clock that tests set.
 */
export async function createApp(
  config: Config,
  ours?: () => Date,
  monotonic: () => number = () => performance.now(),
  machine?: Clocks,
): Promise<App & { close(): Promise<void> }> {
  await using opening = new AsyncDisposableStack()
  const ground = await openGround(config, opening, { ours, monotonic, machine })
  await installBuiltInRoles(ground.db, ground.clock().toISOString())
  const parts = openParts(ground, opening)
  clearOnCommit(ground.db, parts)
  const done = opening.move()
  return withHooks({ ...ground, ...parts, close: () => done.disposeAsync() })
}

/** Clocks that tests can replace. */
type Times = { ours: (() => Date) | undefined; monotonic: () => number; machine: Clocks | undefined }

async function openGround(
  config: Config,
  opening: AsyncDisposableStack,
  { ours, monotonic, machine }: Times,
): Promise<Ground> {
  const { log, tracer, db, cipher } = await openData(config, opening)
  const { skew, clock } = await openClock(db, machine, ours)
  const fleet: Fleet = { nodes: 1, isFirst: true }
  const keyring = await openKeys(config, { db, cipher }, clock)
  const metrics = openMetrics(config, db, { isFirst: () => fleet.isFirst, clock }, tracer.isOn)
  metrics.watchClock(skew.offsetMs)
  const store = opening.adopt(await openStore(config, metrics, tracer), ({ blobs }) => blobs.close())
  await bindBlobStore(db, store.blobs, blobLocationOf(config.blobs, config.data))
  const outgoing = createOutgoing({
    allowed: allowedAddresses(config, config.issuersPrivate),
    allowHttp: config.allowInsecureIssuers,
  })
  if (config.allowPrivateAddresses) {
    log.warn('requests to all private addresses are allowed; list only the needed ones in the setting of each purpose')
  }
  // The addresses of clouds come only from settings, so this client may use all private addresses.
  const toClouds = createOutgoing({ allowed: allPrivateAddresses, allowHttp: config.allowInsecureIssuers })
  return {
    ...{ config, version, vendor: vendorOf(config), log, metrics, db, resources, cipher, keyring, tracer },
    ...{ clock, monotonic, skew, fleet, outgoing, dns: createDns() },
    ...store,
    ...openBudgets(config, metrics, opening, monotonic),
    failures: opening.adopt(createFailureLog(log, isAway), (open) => open.close()),
    eventTable: buildEventTable(services, eventBodies),
    buffers: createBuffers(),
    limits: createLimits(perMinuteOf(config), monotonic, undefined, () => fleet.nodes),
    providerDirectory: createProviderDirectory(outgoing, monotonic),
    outsideIssuers: createOutsideIssuers(outgoing, () => clock().getTime()),
    awsCallers: createAwsCallers(toClouds, config.awsStsUrl),
    checkCloud: cloudCheck(config, toClouds, keyring, clock),
    scannerToken: (pull) => signScannerToken(keyring, pull, clock()),
  }
}

/** True if an error means that the database or another needed server is unavailable. */
const isAway = (error: unknown): boolean =>
  isUnavailable(error) || (error instanceof AppError && error.code === 'UNAVAILABLE')

/** Opens the caches, signals and clients of all domains, the lowest domain first. */
function openParts(ground: Ground, opening: AsyncDisposableStack): Parts {
  const opened: Partial<Parts> = {}
  for (const { parts } of domains) if (parts) Object.assign(opened, parts(ground, opening))
  return opened as Parts
}

/** Opens the log, the tracer, and the database that uses both. */
async function openData(config: Config, opening: AsyncDisposableStack) {
  const log = createLogger(process.stderr, config.logLevel, {
    format: formatFor(process.stderr),
    isHeld: !config.isLogLevelGiven,
  })
  opening.defer(() => log.flush())
  const tracer = opening.adopt(await openTracing(config, log), (open) => open.close())
  const { cipher, applied, db } = opening.adopt(await openDatabase(config), (open) => open.close())
  if (applied.length > 0) log.info('database migrated', { migrations: applied.length, last: applied.at(-1) })
  return { log, tracer, cipher, db: traceDatabase(db, tracer) }
}

/** Loads the exporter of traces only if the settings name a collector. */
async function openTracing({ traces, tracesHeaders, tracesPercent }: Config, log: Logger): Promise<Tracer> {
  if (traces === '') return noTracer
  const { openTracer } = await import('./tracing/otlp.ts')
  const onLost = (spans: number, cause: unknown) => log.warn('sending traces failed', { spans, error: cause })
  return openTracer({ url: traces, headers: tracesHeaders, share: tracesPercent / 100, version, onLost })
}

/** Creates a clock with the time of the database. If a test has given a clock, uses that one. */
async function openClock(db: Db, machine?: Clocks, ours?: () => Date) {
  const skew = createSkew(db, machine)
  await skew.measure()
  return { skew, clock: ours ?? skew.now }
}

async function openKeys(config: Config, { db, cipher }: Pick<App, 'db' | 'cipher'>, clock: () => Date) {
  const keyring = await keyringOf(config, { db, cipher }, clock)
  const published = keyring.algorithms()
  // Adds a key for another algorithm only on a server. The settings of a command may differ from the server's.
  if (!config.signingAlgorithms.every((one) => published.includes(one))) {
    await keyring.rotate((work, options) => db.tx(work, options))
  }
  return keyring
}

async function openStore(
  config: Config,
  metrics: Metrics,
  tracer: Tracer,
): Promise<Pick<App, 'blobs' | 'blobRedirects'>> {
  const observe: Observe = (operation, result, seconds) => {
    metrics.blobRequests.observe({ operation, result }, seconds)
    tracer.past(operation, { 'pinfold.result': result }, seconds, result !== 'ok')
  }
  const blobs = await openBlobs(config.blobs, config.data, { env: config.aws, observe })
  metrics.watchBlobStore(() => blobs.isUp())
  return { blobs, blobRedirects: clientRanges(config.blobRedirects) }
}

/** Maximum number of device codes that one person can try per minute. More would not be typing errors. */
const codesPerMinute = 10

/**
 * Maximum number of AWS requests per minute for one identity from one network. One is enough for an hour, since tokens are valid
 * that long.
 */
const awsPerMinute = 60

/** Creates the measurement of main-thread time and the budgets of callers. */
function openBudgets(
  config: Config,
  metrics: Metrics,
  opening: AsyncDisposableStack,
  monotonic: () => number,
): Pick<App, 'budgets' | 'threadTime'> {
  const threadTime = opening.adopt(createThreadTime(monotonic), (open) => open.close())
  const options = {
    callerPercent: config.budgetCallerPercent,
    organizationPercent: config.budgetOrganizationPercent,
    burstMs: config.budgetBurstMs,
  }
  const budgets = createBudgets(options, monotonic, threadTime.turns)
  metrics.watchBudgets(budgets.spentMs)
  return { budgets, threadTime }
}

function perMinuteOf(config: Config): Record<LimitKind, number> {
  return {
    source: config.exchangesPerSource,
    issuer: config.exchangesPerIssuer,
    identity: config.exchangesPerIdentity,
    aws: Math.min(awsPerMinute, config.exchangesPerIdentity),
    request: config.requestsPerSource,
    refusal: config.refusalsPerSource,
    guess: codesPerMinute,
    scim: config.scimRequests,
    // Ten times as many requests by address, since identity providers in a cloud share their addresses.
    scimSource: 10 * config.scimRequests,
  }
}

/** Creates the metrics of this process, and of the database that several servers may share. */
function openMetrics(config: Config, db: Db, sight: NodeView, isTraced: boolean): Metrics {
  const vendor = vendorOf(config)
  const wanted: Wanted = (one, type) =>
    wants({ vendor }, { ...one, types: JSON.parse(one.types) }, { type, subject: '' })
  return createMetrics(db, config.vulnerabilitySources, { ...sight, wants: wanted }, isTraced)
}

/** Checks the credentials of a cloud account. Combines clouds and issuer here, since services import neither. */
function cloudCheck(config: Config, outgoing: Outgoing, keyring: Keyring, clock: () => Date): App['checkCloud'] {
  const clouds = createClouds(outgoing, {
    amazonSts: config.awsStsUrl,
    googleSts: config.googleStsUrl,
    googleIam: config.googleIamUrl,
    azureLogin: config.azureLoginUrl,
  })
  return (issuer, group, account) =>
    clouds.check(account, group, (says) => signCloudAssertion(keyring, { ...says, issuer, now: clock() }))
}
