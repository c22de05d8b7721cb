// Types of callers. Contains no code. Separate from app.ts, so that files of hooks can import it.
import type { Rights } from './domains/iam/access/grants.model.ts'
import type { AccessToken, CallerSession } from './issuer/access-token.ts'
import type { Cause } from './lib/cause.ts'
import type { Logger } from './lib/log.ts'

/** Caller, cause and log of a piece of work. */
export type By = {
  caller: Caller
  cause: Cause
  log: Logger
}

export type Caller = {
  /** Uid of the identity. Empty for a caller without a credential. */
  uid: string
  /** True for the operator, who has access to the data folder or the master key. */
  operator: boolean
  rights: Rights
  /** Token of the caller. Undefined for methods without authentication. */
  token?: AccessToken
  /** Session of a person. Undefined for workloads and the operator's tokens. */
  session?: CallerSession
}
