import { performance } from 'node:perf_hooks'
import { buildEventTable } from './api/event-table.ts'
import { eventBodies, services } from './api/services.ts'
import type { App, Fleet } from './app.ts'
import { blobPlace, openBlobs } from './blobs/open.ts'
import type { Observe } from './blobs/operations.ts'
import { createAwsCallers } from './clouds/amazon-callers.ts'
import { createClouds } from './clouds/clouds.ts'
import type { Sight } from './common-figures.ts'
import { type Config, vendorOf } from './config.ts'
import { type Clocks, createSkew } from './db/skew.ts'
import type { Db } from './db/sql.ts'
import { isUnavailable } from './db/unavailable.ts'
import type { Wanted } from './domains/events/delivery/depth.store.ts'
import { wants } from './domains/events/delivery/wants.ts'
import { createRefusalLog } from './domains/events/refusals/refusal-log.ts'
import { createFeed } from './domains/events/stream/feed.ts'
import { createAudience } from './domains/events/subscriptions/audience.ts'
import { createLastSeen } from './domains/iam/identities/last-seen.ts'
import { createLivePushTokens } from './domains/iam/push-tokens/live-push-tokens.ts'
import { createRepeats } from './domains/iam/repeats/repeats.ts'
import { createGrantCache } from './domains/iam/roles/grants.ts'
import { installBuiltInRoles } from './domains/iam/roles/roles.service.ts'
import { createLiveSessions } from './domains/iam/sessions/live-sessions.ts'
import { createTermsGate } from './domains/iam/terms/terms-gate.ts'
import { createCheckpointGuard } from './domains/ledger/proofs/checkpoint-guard.ts'
import { createSequencing } from './domains/ledger/proofs/sequencing.ts'
import { createTileCache } from './domains/ledger/proofs/tile-cache.ts'
import { createWitnessing } from './domains/ledger/proofs/witnessing.ts'
import { createRegistryEvents } from './domains/outbox/emit-registry.ts'
import { aPull, aPush } from './domains/outbox/registry-events.model.ts'
import { createGateCache } from './domains/policy/gates/gate-cache.ts'
import { createPullRuleCache } from './domains/policy/pull-rules/pull-rule-cache.ts'
import { createLawCache } from './domains/policy/retention/law-cache.ts'
import { createViewCache } from './domains/policy/views/view-cache.ts'
import { createManifestCache } from './domains/registry/manifests/manifest-cache.ts'
import { createPathCache } from './domains/registry/repos/paths.service.ts'
import { createTagCache } from './domains/registry/tags/tag-cache.ts'
import { createDigestUsage } from './domains/registry/usage/digest-usage.ts'
import { createReportMemory } from './domains/scanning/outside/report-memory.service.ts'
import { signCloudAssertion } from './issuer/cloud-assertion.ts'
import type { Keyring } from './issuer/keyring.ts'
import { createOutsideIssuers } from './issuer/outside-issuers.ts'
import { createProviderDirectory } from './issuer/people/directory.ts'
import { signScannerToken } from './issuer/scanner-token.ts'
import { createBudgets } from './lib/budgets/budgets.ts'
import { createThreadTime } from './lib/budgets/thread-time.ts'
import { createBuffers } from './lib/buffers.ts'
import { createLapsing } from './lib/caches/lapsing.ts'
import { createRemembered } from './lib/caches/remembered.ts'
import { AppError } from './lib/errors.ts'
import { createLogger, type Logger } from './lib/log.ts'
import { clientRanges } from './lib/net/client-ranges.ts'
import { createLimits, type LimitKind } from './lib/net/limits.ts'
import { createOutgoing, type Outgoing } from './lib/net/outgoing.ts'
import { createOutgoingStreams } from './lib/net/outgoing-streams.ts'
import { allPrivateAddresses, privateAddresses } from './lib/net/private-addresses.ts'
import { createSinkClient } from './lib/net/sink-client.ts'
import { createDropped } from './lib/noted/dropped.ts'
import { createFailureLog } from './lib/noted/failure-log.ts'
import { createHostPaces } from './lib/registries/host-paces.ts'
import { createRegistryClient } from './lib/registries/registry-client.ts'
import { createRegistryTokens } from './lib/registries/registry-tokens.ts'
import { createSignal } from './lib/signal.ts'
import { createReadTurns, reportTurnLimits } from './lib/turns/read-turns.ts'
import { tieBlobs } from './maintenance/tie-blobs.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { openDatabase } from './open-database.ts'
import { keyringOf } from './open-issuer.ts'
import { clearOnCommit, resources, withHooks } from './resources.ts'
import { traceDatabase } from './trace-database.ts'
import { noTracer, type Tracer } from './tracing/tracer.ts'
import { version } from './version.ts'

/**
 * Opens everything once, in order; `close` undoes it in reverse, also when a later step fails. `monotonic` gives the
 * milliseconds by which what is remembered grows old, `machine` those of the clocks that are compared with the database's, and
 * `ours` a time that is a test's own.
 */
export async function createApp(
  config: Config,
  ours?: () => Date,
  monotonic: () => number = () => performance.now(),
  machine?: Clocks,
): Promise<App & { close(): Promise<void> }> {
  await using opening = new AsyncDisposableStack()
  const { log, tracer, db, sealer } = await openGround(config, opening)
  const { skew, clock } = await openClock(db, machine, ours)
  const fleet: Fleet = { nodes: 1, isFirst: true }
  await installBuiltInRoles(db, clock().toISOString())
  const keyring = await openKeys(config, { db, sealer }, clock)
  const caches = openCaches(db, config, clock, monotonic)
  const { failures, lastSeen } = openFailures(db, log, opening)
  const metrics = openMetrics(config, db, { isFirst: () => fleet.isFirst, clock }, tracer.isOn)
  metrics.watchClock(skew.offsetMs)
  const checkpointGuard = createCheckpointGuard()
  metrics.watchLedgerLogs(() => checkpointGuard.suspended)
  const store = opening.adopt(await openStore(config, metrics, tracer), ({ blobs }) => blobs.close())
  await tieBlobs(db, store.blobs, blobPlace(config.blobs, config.data))
  const events = { written: createSignal(), routed: createSignal(), queued: createSignal() }
  const eventTable = buildEventTable(services, eventBodies)
  const parts = { config, db, events, eventTable, failures, log, metrics, clock, fleet }
  const { registryEvents, usage, refusals } = openPulls(parts, opening, monotonic)
  const { toClouds, sinkClient, ...ways } = openOutgoing(config, log, clock, monotonic)
  const sinks = opening.adopt(sinkClient, (client) => client.close())
  const feed = opening.adopt(createFeed({ db, failures, events }, config.streamsPerCaller), (open) => open.close())
  const spending = openBudgets(config, metrics, opening, monotonic)
  const done = opening.move()
  return withHooks({
    config,
    version,
    vendor: vendorOf(config),
    log,
    failures,
    metrics,
    db,
    resources,
    sealer,
    keyring,
    ...caches,
    lastSeen,
    repeats: createRepeats(db, sealer, clock),
    buffers: createBuffers(),
    ...store,
    incoming: new Map(),
    closing: new Map(),
    ...createSignals(monotonic),
    registryEvents,
    usage,
    refusals,
    tracer,
    searchTotals: createRemembered(1000),
    ...spending,
    limits: createLimits(perMinuteOf(config), monotonic, undefined, () => fleet.nodes),
    ...ways,
    providerDirectory: createProviderDirectory(ways.outgoing, monotonic),
    outsideIssuers: createOutsideIssuers(ways.outgoing, () => clock().getTime()),
    tooLongClaims: createLapsing(mostTooLong),
    awsCallers: createAwsCallers(toClouds, config.awsStsUrl),
    checkCloud: cloudCheck(config, toClouds, keyring, clock),
    scannerToken: (pull) => signScannerToken(keyring, pull, clock()),
    terms: createTermsGate(db, config.termsDocuments, config.termsMethods.flatMap(eventTable.inEveryVersion)),
    events,
    eventTable,
    feed,
    sinks,
    clock,
    witnessing: createWitnessing(monotonic),
    sequencing: createSequencing(monotonic),
    checkpointGuard,
    tiles: createTileCache(db),
    skew,
    fleet,
    close: () => done.disposeAsync(),
  })
}

/** The log, the traces, and the database that shows in both. */
async function openGround(config: Config, opening: AsyncDisposableStack) {
  const log = createLogger(process.stderr, config.logLevel)
  opening.defer(() => log.flush())
  const tracer = opening.adopt(await openTracing(config, log), (open) => open.close())
  const { sealer, applied, db } = opening.adopt(await openDatabase(config), (open) => open.close())
  if (applied.length > 0) log.info('database migrated', { applied })
  return { log, tracer, sealer, db: traceDatabase(db, tracer) }
}

/** Loads what sends traces only where there is somebody to send them to. */
async function openTracing({ traces, tracesHeaders, tracesPercent }: Config, log: Logger): Promise<Tracer> {
  if (traces === '') return noTracer
  const { openTracer } = await import('./tracing/otlp.ts')
  const onLost = (spans: number, cause: unknown) => log.warn('traces could not be sent', { spans, error: cause })
  return openTracer({ url: traces, headers: tracesHeaders, share: tracesPercent / 100, version, onLost })
}

/** What is remembered of rows for a moment. */
function openCaches(db: Db, config: Config, clock: () => Date, monotonic: () => number) {
  const caches = {
    grants: createGrantCache(db, monotonic),
    laws: createLawCache(db, monotonic),
    manifests: createManifestCache(monotonic),
    tags: createTagCache(db, monotonic),
    views: createViewCache(db, monotonic),
    paths: createPathCache(db, monotonic),
    sessions: createLiveSessions(db, config, monotonic),
    pushTokens: createLivePushTokens(db, { config, clock }, monotonic),
    pullRules: createPullRuleCache(db, clock, monotonic),
    gates: createGateCache(db, clock, monotonic),
  }
  clearOnCommit(db, caches)
  return caches
}

/** By which what happens in this process wakes the duties that go on with it. */
function createSignals(
  monotonic: () => number,
): Pick<App, 'collections' | 'removals' | 'retention' | 'scanning' | 'images'> {
  return {
    collections: { asked: createSignal(), moved: createSignal() },
    removals: createSignal(),
    retention: createSignal(),
    scanning: {
      ...{ reported: createSignal(), scans: createSignal() },
      ...{ reading: createReportMemory(), turns: createReadTurns(monotonic, reportTurnLimits) },
    },
    images: {
      ...{ pushed: createSignal(), read: createSignal() },
      ...{ turns: createReadTurns(monotonic), full: createLapsing(mostFull) },
    },
  }
}

/** A clock that goes by the database's; one that is given stays as it is. */
async function openClock(db: Db, machine?: Clocks, ours?: () => Date) {
  const skew = createSkew(db, machine)
  await skew.measure()
  return { skew, clock: ours ?? skew.now }
}

async function openKeys(config: Config, { db, sealer }: Pick<App, 'db' | 'sealer'>, clock: () => Date) {
  const keyring = await keyringOf(config, { db, sealer }, clock)
  const published = keyring.algorithms()
  // A further algorithm is for the server to add: the settings of a command may be others.
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

/** Number of identities that are remembered after a warning of a claim that is too long. */
const mostTooLong = 1000
/** How many organisations are known whose images are left alone. */
const mostFull = 10_000
/** How many tags are known that upstreams need not be asked for. */
const mostSilent = 20_000

/** The way to the registries that repos follow, and the signal to go it. */
function openUpstreams(config: Config, clock: () => Date, monotonic: () => number): Pick<App, 'follows' | 'upstreams'> {
  const allowed = config.allowPrivateAddresses ? allPrivateAddresses : privateAddresses(config.upstreamsPrivate)
  const outgoing = createOutgoingStreams({ allowed, allowHttp: config.allowInsecureUpstreams })
  const upstreams = createRegistryClient({
    outgoing,
    tokens: createRegistryTokens(outgoing, monotonic),
    paces: createHostPaces(monotonic),
    now: () => clock().getTime(),
  })
  const signals = { due: createSignal(), fetches: createSignal(), histories: createSignal() }
  return { follows: { ...signals, flights: new Map(), silent: createLapsing(mostSilent) }, upstreams }
}

/** The ways to servers that somebody else named, each with the private addresses that it may go to. */
function openOutgoing(config: Config, log: Logger, clock: () => Date, monotonic: () => number) {
  if (config.allowPrivateAddresses) {
    log.warn('all private addresses may be called; list those that need it by their purpose instead')
  }
  const listed = (entries: readonly string[]) =>
    config.allowPrivateAddresses ? allPrivateAddresses : privateAddresses(entries)
  const allowHttp = config.allowInsecureIssuers
  return {
    outgoing: createOutgoing({ allowed: listed(config.issuersPrivate), allowHttp }),
    // Http stays on this machine, where nobody else reads it, and only where the list has it.
    toSources: createOutgoing({
      allowed: privateAddresses(config.vulnerabilityPrivate),
      allowHttp: /^http:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])[:/]/.test(config.vulnerabilityMirror),
    }),
    toWitnesses: createOutgoing({ allowed: listed(config.witnessesPrivate), allowHttp: config.allowInsecureUpstreams }),
    toScanners: createOutgoing({
      allowed: privateAddresses(config.scannersPrivate),
      allowHttp: config.allowInsecureScanners,
    }),
    // Where the clouds are is for the settings alone to say.
    toClouds: createOutgoing({ allowed: allPrivateAddresses, allowHttp }),
    sinkClient: createSinkClient({ allowed: listed(config.sinksPrivate), allowHttp: config.allowInsecureSinks }),
    ...openUpstreams(config, clock, monotonic),
  }
}

/** How many codes of programs one person may try; nobody mistypes more often. */
const codesPerMinute = 10

/** How often AWS is asked for one identity from one network; a token lasts an hour. */
const awsPerMinute = 60

/** Users of the main thread, and the share that each may use. */
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
    // Providers in a cloud share their addresses.
    scimSource: 10 * config.scimRequests,
  }
}

/** Metrics of this process, and of the database that several may share. */
function openMetrics(config: Config, db: Db, sight: Sight, isTraced: boolean): Metrics {
  const vendor = vendorOf(config)
  const wanted: Wanted = (one, type) =>
    wants({ vendor }, { ...one, types: JSON.parse(one.types) }, { type, subject: '' })
  return createMetrics(db, config.vulnerabilitySources, { ...sight, wants: wanted }, isTraced)
}

/** The log of failures that repeat, and the last use of identities, whose failures are some. */
function openFailures(db: Db, log: Logger, opening: AsyncDisposableStack): Pick<App, 'failures' | 'lastSeen'> {
  const isAway = (error: unknown) => isUnavailable(error) || (error instanceof AppError && error.code === 'UNAVAILABLE')
  const failures = opening.adopt(createFailureLog(log, isAway), (open) => open.close())
  const onError = (error: unknown) => failures.repeated('last use of identities could not be written', error)
  return { failures, lastSeen: opening.adopt(createLastSeen(db, onError), (open) => open.close()) }
}

/** What a pull leaves: a count, and an event where somebody wants it. */
function openPulls(
  parts: Pick<App, 'config' | 'db' | 'events' | 'eventTable' | 'failures' | 'log' | 'metrics' | 'clock' | 'fleet'>,
  opening: AsyncDisposableStack,
  monotonic: () => number,
): Pick<App, 'registryEvents' | 'usage' | 'refusals'> {
  const { config, db, eventTable, failures, log, metrics, clock, fleet } = parts
  const audienceOf = (type: string) => createAudience(db, type, clock, () => performance.now(), vendorOf(config)?.token)
  const audiences = {
    pulls: audienceOf(eventTable.find('registry.pull', undefined, aPull.kind).type),
    'refused pushes': audienceOf(eventTable.find('registry.push', undefined, aPush.kind).type),
  }
  const droppedOf = (what: string, warn: (count: number) => void) => {
    const count = (by: number) => metrics.registryDropped.inc({ what }, by)
    return opening.adopt(createDropped(count, warn, monotonic), (open) => open.close())
  }
  const dropped = {
    pulls: droppedOf('pull_event', (count) => log.warn('events of pulls dropped', { count })),
    'refused pushes': droppedOf('refused_push_event', (count) =>
      log.warn('events of refused pushes dropped', { count }),
    ),
    counts: droppedOf('pull_count', (count) => log.warn('pulls left out of the usage of digests', { count })),
  }
  const perMinute = () => config.registryEventsPerOrganization / fleet.nodes
  const registryEvents = createRegistryEvents(parts, audiences, perMinute, {
    failed: (error: unknown) => failures.repeated('registry events could not be written', error),
    dropped: (kind, count) => dropped[kind].add(count),
  })
  const usage = createDigestUsage(db, {
    failed: (error: unknown) => failures.repeated('usage of digests could not be written', error),
    dropped: (count) => dropped.counts.add(count),
  })
  const refusals = createRefusalLog(db, (error: unknown) => failures.repeated('refusals could not be written', error))
  return {
    registryEvents: opening.adopt(registryEvents, (open) => open.close()),
    usage: opening.adopt(usage, (open) => open.close()),
    refusals: opening.adopt(refusals, (open) => open.close()),
  }
}

/** Services know neither the clouds nor the issuer; here the two meet. */
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
