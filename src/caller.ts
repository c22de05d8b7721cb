// The types of whoever does something; no code. Apart from app.ts, so that hooks can name them.
import type { Rights } from './domains/iam/access/grants.model.ts'
import type { AccessToken, CallerSession } from './issuer/access-token.ts'
import type { Cause } from './lib/cause.ts'
import type { Logger } from './lib/log.ts'

/** Caller, cause and log of work. */
export type By = {
  caller: Caller
  cause: Cause
  log: Logger
}

export type Caller = {
  /** The identity's uid; empty for a caller without a credential. */
  uid: string
  /** The caller holds the data folder or the master key, and counts as staff. */
  operator: boolean
  rights: Rights
  /** The token of the caller; absent for methods that read none. */
  token?: AccessToken
  /** The session of a person; absent for workloads and the operator's tokens. */
  session?: CallerSession
}
