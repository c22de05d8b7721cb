// Type of a domain. Contains no code, so that domains can implement it and domains.ts can list them.
import type { App, Ground, Parts, Service } from './app.ts'
import type { DomainHooks } from './hooks.ts'
import type { Job, LongJob } from './job.ts'
import type { EventBody } from './lib/events/event-body.ts'
import type { Resource } from './lib/resource.ts'

/** A domain with all that it adds to the server. Several domains may have handlers of one service. */
export type Domain = {
  /** Opens its in-memory parts. Closing functions are added to `opening`. */
  parts?(ground: Ground, opening: AsyncDisposableStack): Partial<Parts>
  services: readonly Service[]
  /** Bodies of its events. */
  eventBodies: readonly EventBody[]
  /** Resources that it stores. */
  resources: readonly Resource[]
  /** Its background jobs. */
  jobs: readonly (Job | LongJob)[]
  /** Hooks of lower domains that it implements. */
  hooks?(app: App): DomainHooks
}
