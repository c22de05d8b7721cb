import { randomUUID } from 'node:crypto'

/** Identity, time, origin and client of a change. Rows, events and the audit log store no other data of a request. */
export type Cause = {
  /** Uid of the identity. Empty for an anonymous caller. */
  actor: string
  /** Claims of the outside token with which the identity has signed in, such as `iss`, `sub` and `aud`, each as text. */
  act?: Readonly<Record<string, string>> | undefined
  /** Time in ISO 8601, UTC, with milliseconds. */
  now: string
  /** Address of the client. Empty if it is unknown, and for work without a network connection. */
  source: string
  /** `User-Agent` of the client. Empty if it sends none. */
  userAgent: string
  requestId: string
  version: Version
  /** True if the audit log of the organization must not name the actor, unless the actor is a member. */
  hidesActor?: boolean
}

/** Value of `iss` for an identity that uses a push token. `sub` is then the uid of the push token. */
export const pushTokenIssuer = 'push-token'

/** Version of the called method. Undefined for methods that exist in one version only, and for work that is not a call. */
export type Version = 'v1' | 'v2' | undefined

/** Cause of work without a request: a run of a background job, or a command, whose `actor` is the operator. */
export function ownCause(clock: () => Date, actor = ''): Cause {
  return {
    actor,
    now: clock().toISOString(),
    source: '',
    userAgent: 'pinfold',
    requestId: randomUUID(),
    version: undefined,
  }
}
