import type { Service } from '#app.ts'
import { domains } from '#domains/domains.ts'
import { Auth } from '#gen/pinfold/auth/v1/auth_pb.ts'
import { SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { securityTokens } from '#issuer/sts.ts'
import { auth, authEvents } from '#issuer/who-am-i.ts'
import type { EventBody } from '#lib/events/event-body.ts'

/** All services of the server. If several domains have handlers for one service, the handlers are merged. */
export const services: readonly Service[] = [
  ...Map.groupBy(
    domains.flatMap((domain) => domain.services),
    ({ desc }) => desc,
  ),
]
  .map(([desc, parts]): Service => ({ desc, handlers: Object.assign({}, ...parts.map(({ handlers }) => handlers)) }))
  .concat({ desc: SecurityTokenService, handlers: securityTokens }, { desc: Auth, handlers: auth })

/** Event bodies of all domains. */
export const eventBodies: readonly EventBody[] = [...domains.flatMap((domain) => domain.eventBodies), ...authEvents]
