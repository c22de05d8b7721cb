import type { ExpiringCache } from '#lib/caches/expiring-cache.ts'
import type { RegistryClient } from '#lib/registries/registry-client.ts'
import type { Signal } from '#lib/signal.ts'

/** Caches, signals and clients of the mirrors domain. They exist as long as the process runs. */
export type MirrorsParts = {
  /**
   * `due`: signals that an upstream has to be checked early. `fetches`: signals that content has to be fetched. `histories`:
   * signals that the history of a tag has to be requested. `flights`: fetches in progress for pulls. `silent`: tags for which
   * upstreams are not asked again yet, each with the warning for its pulls, which may be empty.
   */
  follows: {
    due: Signal
    fetches: Signal
    histories: Signal
    flights: Map<string, Promise<unknown>>
    silent: ExpiringCache<string>
  }
  /** Client for upstream registries. */
  upstreams: RegistryClient
}
