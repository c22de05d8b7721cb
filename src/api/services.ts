import type { Service } from '#app.ts'
import { services as events, eventBodies as subscriptionEvents } from '#domains/events/domain.ts'
import { services as iam, eventBodies as iamEvents } from '#domains/iam/domain.ts'
import { services as libraries } from '#domains/libraries/domain.ts'
import { services as ping } from '#domains/ping/domain.ts'
import { services as registry, eventBodies as registryEvents } from '#domains/registry/domain.ts'
import { services as scanning, eventBodies as scanningEvents } from '#domains/scanning/domain.ts'
import { services as vulnerabilities } from '#domains/vulnerabilities/domain.ts'
import { Auth } from '#gen/pinfold/auth/v1/auth_pb.ts'
import { SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { securityTokens } from '#issuer/sts.ts'
import { auth, authEvents } from '#issuer/who-am-i.ts'
import type { EventBody } from '#lib/events/event-body.ts'

/** Everything the server serves; a new domain is one line here. */
export const services: readonly Service[] = [
  ...iam,
  ...registry,
  ...vulnerabilities,
  ...scanning,
  ...libraries,
  ...events,
  ...ping,
  { desc: SecurityTokenService, handlers: securityTokens },
  { desc: Auth, handlers: auth },
]

/** The bodies of the events of all domains. */
export const eventBodies: readonly EventBody[] = [
  ...iamEvents,
  ...registryEvents,
  ...scanningEvents,
  ...subscriptionEvents,
  ...authEvents,
]
