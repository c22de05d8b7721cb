import { randomUUID } from 'node:crypto'

/** Who wants something done, when, from where and with what: all that rows, events and the audit log tell of a request. */
export type Cause = {
  /** The uid of the identity; empty for nobody. */
  actor: string
  /** By which claims of an outside token the identity had signed in: `iss`, `sub`, `aud` and the like, each one text. */
  act?: Readonly<Record<string, string>> | undefined
  /** ISO 8601 UTC with milliseconds. */
  now: string
  /** The client's address, as far as we can tell; empty for what came over no network. */
  source: string
  /** What the client calls itself; empty when it says nothing. */
  userAgent: string
  requestId: string
  version: Version
}

/** The `iss` of whoever acts by a push token; `sub` is the uid of that. */
export const pushTokenIssuer = 'push-token'

/** Of the contract's packages that can be called; nothing for what is in one version only, and for what is no call. */
export type Version = 'v1' | 'v2' | undefined

/** For what nobody has asked for just now: a run of a worker, or of a command of the operator, who is then the `actor`. */
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
