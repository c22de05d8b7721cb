import { randomUUID } from 'node:crypto'

/** Identity, time, origin and client of a change. Rows, events and the audit log record nothing else of a request. */
export type Cause = {
  /** Uid of the identity; empty for an anonymous caller. */
  actor: string
  /** By which claims of an outside token the identity had signed in: `iss`, `sub`, `aud` and the like, each one text. */
  act?: Readonly<Record<string, string>> | undefined
  /** ISO 8601 UTC with milliseconds. */
  now: string
  /** Address of the client, as far as it is known; empty for work without a network connection. */
  source: string
  /** The `User-Agent` of the client; empty if there is none. */
  userAgent: string
  requestId: string
  version: Version
}

/** The `iss` of an identity that acts by a push token; `sub` is the uid of the push token. */
export const pushTokenIssuer = 'push-token'

/**
 * Version of the contract's packages that is called. Undefined for calls that exist in one version only, and for work that is no
 * call.
 */
export type Version = 'v1' | 'v2' | undefined

/** Cause of work without a request: a run of a background job, or a command of the operator, who is then the `actor`. */
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
