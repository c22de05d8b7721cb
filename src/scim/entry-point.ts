// Entry point of SCIM 2.0 (RFC 7644): `/scim/v2/ORGANIZATION/PROVIDER/…`. Requests have the SCIM token of this identity provider.
import type { Work } from '#app.ts'
import type { Caller } from '#caller.ts'
import { openScim } from '#domains/iam/scim/scim-users.service.ts'
import { afterUnread, answer } from '#edge/answer.ts'
import type { Edge } from '#edge/arrival.ts'
import { bearerOf, nobody } from '#edge/caller.ts'
import { type EntryPoint, type HttpArrival, withVerbs } from '#edge/entry-points.ts'
import { unauthenticated } from '#lib/errors.ts'
import { countRefusals } from '#lib/net/limits.ts'
import { rootOf } from '#lib/uid.ts'
import { scimErrorJson, toScimError } from './errors.ts'
import type { ScimAnswer } from './exchange.ts'
import { answerTo, kinds } from './requests.ts'

const route = /^\/scim\/v2\/([0-9a-f]{40}\/[0-9a-f]{16})(\/.*)?$/

/** Entry point through which identity providers provision people and groups. */
export function scimEntryPoint(edge: Edge): EntryPoint {
  return {
    name: 'scim',
    verifies: true,
    methods: withVerbs(kinds),
    deadlineMs: edge.app.config.requestTimeoutMs,
    matches: (path) => path.startsWith('/scim/') || path === '/scim',
    serve: (arrival) => serve(edge, arrival),
    refuse: (arrival, error) => refuse(arrival, error),
  }
}

async function serve(edge: Edge, arrival: HttpArrival): Promise<void> {
  const [, provider, rest = '/'] = route.exec(arrival.path) ?? []
  const caller = await authenticateProvider(edge, arrival, provider)
  const work = workOf(edge, arrival, caller)
  edge.app.limits.check('scim', rootOf(provider!))
  edge.app.limits.check('scimSource', arrival.source)
  const { search } = arrival
  send(arrival, await answerTo(work, { arrival, url: edge.url, provider: provider!, path: rest, search }))
}

/** Authenticates the identity provider by its SCIM token. Throws the same error for every invalid credential. */
async function authenticateProvider(
  { app }: Edge,
  { authorization, source }: HttpArrival,
  provider: string | undefined,
): Promise<Caller> {
  if (authorization === undefined)
    throw unauthenticated('no credentials were sent; send the SCIM token in the header "Authorization: Bearer TOKEN"')
  await countRefusals(app.limits, source, async () => {
    const token = bearerOf(authorization)
    if (token === undefined || provider === undefined)
      throw unauthenticated(
        'the SCIM token is invalid, has expired or was revoked; generate a new one for the identity provider',
      )
    await openScim(app, provider, token)
  })
  return { ...nobody, uid: provider! }
}

function workOf({ app }: Edge, arrival: HttpArrival, caller: Caller): Work {
  arrival.admit(caller)
  const { requestId, source, userAgent } = arrival
  const cause = { actor: caller.uid, now: app.clock().toISOString(), source, userAgent, requestId, version: undefined }
  return { app, caller, cause, log: app.log.with({ requestId, caller: caller.uid }) }
}

function refuse(arrival: HttpArrival, thrown: unknown): void {
  const error = toScimError(thrown)
  const { app } = arrival.edge
  if (error.status >= 500) {
    app.failures.request(app.log, 'scim request failed', error.cause ?? error, { requestId: arrival.requestId })
  }
  send(arrival, { status: error.status, text: scimErrorJson(error), headers: error.headers })
}

function send(arrival: HttpArrival, { status, text, headers }: ScimAnswer): void {
  const type = text === undefined ? {} : { 'content-type': 'application/scim+json' }
  answer(arrival, status, text, { ...type, ...headers, ...afterUnread(arrival) })
}
