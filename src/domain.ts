// Type of a domain. Contains no code, so that domains and domains.ts can both import it.
import type { App, Ground, Parts, Service } from './app.ts'
import type { DomainHooks } from './hooks.ts'
import type { Job, LongJob } from './job.ts'
import type { EventBody } from './lib/events/event-body.ts'
import type { Resource } from './lib/resource.ts'

/** A domain with all that it adds to the server. Several domains may have handlers for the same service. */
export type Domain = {
  /** Opens the domain's caches, signals and clients. Adds functions that close them to `opening`. */
  parts?(ground: Ground, opening: AsyncDisposableStack): Partial<Parts>
  services: readonly Service[]
  /** Bodies of its event types. */
  eventBodies: readonly EventBody[]
  /** Tables that it stores. */
  resources: readonly Resource[]
  /** Its background jobs. */
  jobs: readonly (Job | LongJob)[]
  /** Hooks of lower domains, as implemented by this domain. */
  hooks?(app: App): DomainHooks
}
