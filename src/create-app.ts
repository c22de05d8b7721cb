import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { buildEventTable } from './api/event-table.ts'
import { eventBodies, services } from './api/services.ts'
import type { App } from './app.ts'
import { openBlobs } from './blobs/open.ts'
import { createClouds } from './clouds/clouds.ts'
import type { Config } from './config.ts'
import { migrate } from './db/migrate.ts'
import { migrations } from './db/migrations/all.ts'
import { openDb } from './db/open.ts'
import { createRegistryEvents } from './domains/events/outbox/emit-registry.ts'
import { createFeed } from './domains/events/stream/feed.ts'
import { createGrantCache } from './domains/iam/access/grants.ts'
import { createLastSeen } from './domains/iam/identities/last-seen.ts'
import { installBuiltInRoles } from './domains/iam/roles/roles.service.ts'
import { createTermsGate } from './domains/iam/terms/terms-gate.ts'
import { createManifestCache } from './domains/registry/manifests/manifest-cache.ts'
import { createPathCache } from './domains/registry/repos/paths.service.ts'
import { signCloudAssertion } from './issuer/cloud-assertion.ts'
import { type Keyring, openKeyring } from './issuer/keyring.ts'
import { createOutsideIssuers } from './issuer/outside-issuers.ts'
import { createBuffers } from './lib/buffers.ts'
import { openMasterKey, parseMasterKey } from './lib/crypto/master-key.ts'
import { createSealer } from './lib/crypto/seal.ts'
import { createLogger } from './lib/log.ts'
import { createLimits } from './lib/net/limits.ts'
import { createOutgoing, type Outgoing } from './lib/net/outgoing.ts'
import { createSinkClient } from './lib/net/sink-client.ts'
import { createRemembered } from './lib/remembered.ts'
import { createSignal } from './lib/signal.ts'
import { createMetrics } from './metrics.ts'
import { clearOnCommit, resources } from './resources.ts'

/** Opens everything once, in order; `close` undoes it in reverse, also when a later step fails. */
export async function createApp(
  config: Config,
  clock: () => Date = () => new Date(),
): Promise<App & { close(): Promise<void> }> {
  await using opening = new AsyncDisposableStack()
  const log = createLogger(process.stderr, config.logLevel)
  opening.defer(() => log.flush())
  const sealer = createSealer(config.masterKey === '' ? openMasterKey(config.data) : parseMasterKey(config.masterKey))
  const opened = await openDb({ database: config.database, file: join(config.data, 'pinfold.db') })
  const db = opening.adopt(opened, (open) => open.close())
  const applied = await migrate(db, migrations)
  if (applied.length > 0) log.info('database migrated', { applied })
  await installBuiltInRoles(db, clock().toISOString())
  const keyring = await openKeyring(db, sealer, () => clock().getTime(), config.keyRotationDays)
  const monotonic = () => performance.now()
  const grants = createGrantCache(db, monotonic)
  const manifests = createManifestCache(monotonic)
  const paths = createPathCache(db, monotonic)
  clearOnCommit(db, { grants, manifests, paths })
  const onError = (error: unknown) => log.error('last use of identities could not be written', { error })
  const lastSeen = opening.adopt(createLastSeen(db, onError), (open) => open.close())
  const blobs = await openBlobs(config.blobs, config.data)
  const events = { written: createSignal(), routed: createSignal(), queued: createSignal() }
  const eventTable = buildEventTable(services, eventBodies)
  const report = {
    failed: (error: unknown) => log.error('registry events could not be written', { error }),
    dropped: (count: number) => log.error('registry events dropped', { count }),
  }
  const registryEvents = opening.adopt(createRegistryEvents({ db, events, eventTable }, report), (open) => open.close())
  const allowPrivate = config.allowPrivateAddresses
  const outgoing = createOutgoing({ allowPrivate, allowHttp: config.allowInsecureIssuers })
  const sinkClient = createSinkClient({ allowPrivate, allowHttp: config.allowInsecureSinks })
  const sinks = opening.adopt(sinkClient, (client) => client.close())
  const feed = opening.adopt(createFeed({ db, log, events }, config.streamsPerCaller), (open) => open.close())
  const perMinute = { source: config.exchangesPerSource, issuer: config.exchangesPerIssuer }
  const done = opening.move()
  return {
    config,
    log,
    metrics: createMetrics(db),
    db,
    resources,
    sealer,
    keyring,
    grants,
    lastSeen,
    buffers: createBuffers(),
    blobs,
    collections: { asked: createSignal(), moved: createSignal() },
    manifests,
    registryEvents,
    images: { pushed: createSignal(), read: createSignal() },
    paths,
    searchTotals: createRemembered(1000),
    limits: createLimits(perMinute, monotonic),
    outgoing,
    outsideIssuers: createOutsideIssuers(outgoing, () => clock().getTime()),
    checkCloud: cloudCheck(config, outgoing, keyring, clock),
    terms: createTermsGate(db, config.termsDocuments, config.termsMethods),
    events,
    eventTable,
    feed,
    sinks,
    clock,
    close: () => done.disposeAsync(),
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
