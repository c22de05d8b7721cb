import type { Lapsing } from '#lib/caches/lapsing.ts'
import type { RegistryClient } from '#lib/registries/registry-client.ts'
import type { Signal } from '#lib/signal.ts'

/** Caches, signals and clients of this domain, for as long as the process runs. */
export type MirrorsParts = {
  /**
   * `due`: an upstream is to be looked at before it would be. `fetches`: there is content to bring. `histories`: there is a tag whose past is to be asked for. `flights`: what pulls bring from upstreams just now. `silent`:
   * tags that upstreams need not be asked for again yet, with what to say of each; empty where it is not there.
   */
  follows: {
    due: Signal
    fetches: Signal
    histories: Signal
    flights: Map<string, Promise<unknown>>
    silent: Lapsing<string>
  }
  /** The registries elsewhere that repos follow. */
  upstreams: RegistryClient
}
