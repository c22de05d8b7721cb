import { kindOf } from '#lib/events/event-body.ts'
import { type Fields, maxNameLength, namePattern } from '#lib/fields.ts'
import type { Grants } from '../access/grants.model.ts'

/** Password for the registry. It has the permissions of its creator, narrowed to a group or to some repositories. */
export type PushToken = {
  /** Uid, below the uid of the creator. */
  uid: string
  /** Uid of the creator, which may be the operator. */
  identityUid: string
  /** User name for `docker login`, with the secret as password. */
  userName: string
  name: string
  /** Group in which the token is valid, including everything below it. */
  group: string
  /** Repositories in the group to which the token is limited. Empty for all repositories. */
  repos: readonly string[]
  /** True if the token allows pushes as well as pulls. */
  push: boolean
  /** Sign-in provider of the session in which the token was created. Empty for no session. */
  provider: string
  organization: string
  externalId: string
  issuer: string
  /** Uid of the session in which the token was created. Empty for no session. */
  sessionUid: string
  createTime: string
  expireTime: string
  /** Empty if the token was never used. */
  lastUsedTime: string
  lastUsedFrom: string
}

export const pushTokenType = 'iam.pinfold.dev/PushToken'

export const toPushTokenResource = kindOf<PushToken>('push-token')
/** `session`: somebody else may have used the session in which the token was created, so the token was revoked with it. */
export type RevokeReason = 'revoked' | 'provider' | 'session'
export type RevokedPushToken = { token: PushToken; reason: RevokeReason }
export const toRevokedPushTokenResource = kindOf<RevokedPushToken>('revoked-push-token')

export const pushTokenFields = {
  uid: { column: 'uid', sort: true },
  name: { column: 'name', required: true, pattern: namePattern, maxLength: maxNameLength },
} as const satisfies Fields<PushToken>

const [minute, hour, day] = [60, 60 * 60, 24 * 60 * 60]

/** Shortest, longest and default life of a push token, in seconds. */
export const life = { least: hour, most: 365 * day, usual: 30 * day } as const
/** Time for which an expired token stays in lists, in seconds. */
export const keptSeconds = 30 * day
/** A use is recorded if the last recorded use is at least this old, in seconds. */
export const noteUseSeconds = minute
/** Most tokens of one creator, most tokens of one organization, and most repositories of one token. */
export const most = { ofMaker: 100, ofOrganization: 10_000, repos: 50 } as const

/** Part of a valid push token that is needed for each request. */
export type LivePushToken = {
  identityUid: string
  narrowing: Grants
  /** `act` of requests with the token, as in events. */
  act: Readonly<Record<string, string>>
}

/** Cache of valid push tokens. Entries are at most half a second old. */
export type CachedPushTokens = {
  /**
   * Push token of this uid. Undefined if the token was revoked or has expired, or if the creator's provider is no longer trusted.
   */
  of(uid: string): Promise<LivePushToken | undefined>
  /** Clears the cache. Reads in progress do not fill it again. */
  clear(): void
}
