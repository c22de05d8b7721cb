import type { Ground } from '#app.ts'
import { createDropped } from '#lib/batches/dropped.ts'
import { createExpiringCache } from '#lib/caches/expiring-cache.ts'
import { createReadScheduler } from '#lib/scheduling/read-scheduler.ts'
import { createSignal } from '#lib/signal.ts'
import { createManifestCache } from './manifests/manifest-cache.ts'
import type { RegistryParts } from './parts.ts'
import { createPathCache } from './repos/paths.service.ts'
import { createTagCache } from './tags/tag-cache.ts'
import { createDigestUsage } from './usage/digest-usage.ts'

/** Most organizations in the cache of organizations above their quota. */
const mostFull = 10_000

export function openRegistry(ground: Ground, opening: AsyncDisposableStack): RegistryParts {
  const { db, monotonic } = ground
  return {
    incoming: new Map(),
    closing: new Map(),
    collections: { asked: createSignal(), moved: createSignal() },
    paths: createPathCache(db, monotonic),
    tags: createTagCache(db, monotonic),
    manifests: createManifestCache(monotonic),
    usage: openUsage(ground, opening),
    images: {
      ...{ pushed: createSignal(), read: createSignal() },
      ...{ turns: createReadScheduler(monotonic), full: createExpiringCache(mostFull) },
    },
  }
}

function openUsage({ db, failures, log, metrics, monotonic }: Ground, opening: AsyncDisposableStack) {
  const count = (by: number) => metrics.registryDropped.inc({ what: 'pull_count' }, by)
  const warn = (dropped: number) => log.warn('pulls left out of the usage of digests', { count: dropped })
  const counts = opening.adopt(createDropped(count, warn, monotonic), (open) => open.close())
  const usage = createDigestUsage(db, {
    failed: (error: unknown) => failures.repeated('usage of digests could not be written', error),
    dropped: (by) => counts.add(by),
  })
  return opening.adopt(usage, (open) => open.close())
}
