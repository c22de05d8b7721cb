// The type of what a domain adds to the server; no code, so that the domains can write theirs and domains.ts can list them.
import type { App, Ground, Parts, Service } from './app.ts'
import type { Duty, LongDuty } from './duty.ts'
import type { DomainHooks } from './hooks.ts'
import type { EventBody } from './lib/events/event-body.ts'
import type { Resource } from './lib/resource.ts'

/** A domain, and all that it adds to the server. Handlers of one service may stand in several domains. */
export type Domain = {
  /** Opens what it holds in memory; what has to be closed is added to `opening`. */
  parts?(ground: Ground, opening: AsyncDisposableStack): Partial<Parts>
  services: readonly Service[]
  /** The bodies of its events. */
  eventBodies: readonly EventBody[]
  /** Resources that it stores. */
  resources: readonly Resource[]
  /** Its work in the background. */
  duties: readonly (Duty | LongDuty)[]
  /** Hooks of lower domains that it implements. */
  hooks?(app: App): DomainHooks
}
