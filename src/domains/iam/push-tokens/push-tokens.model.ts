import { kindOf } from '#lib/events/event-body.ts'
import { type Fields, maxNameLength, namePattern } from '#lib/fields.ts'
import type { Grants } from '../access/grants.model.ts'

/** Password for the registry with the rights of its maker, narrowed to the scope of the token. */
export type PushToken = {
  /** Below the uid of the maker. */
  uid: string
  /** The maker, which may be the operator. */
  identityUid: string
  /** User name that clients send with the secret. */
  userName: string
  name: string
  /** Group in which the token works, with everything below. */
  group: string
  /** Only these repositories of the group. Empty for all. */
  repos: readonly string[]
  /** True if the token allows pushes as well as pulls. */
  push: boolean
  /** Provider of the sign-in of the maker's session. Empty for none. */
  provider: string
  organization: string
  externalId: string
  issuer: string
  /** Session in which the token was created. Empty for none. */
  sessionUid: string
  createTime: string
  expireTime: string
  /** Empty before its first use. */
  lastUsedTime: string
  lastUsedFrom: string
}

export const pushTokenType = 'iam.pinfold.dev/PushToken'

export const toPushTokenResource = kindOf<PushToken>('push-token')
/** `session`: revoked with the session in which it was created, since its creator may not be the maker. */
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
/** Time for which an expired token is still listed, in seconds. */
export const keptSeconds = 30 * day
/** A use is recorded if the last recorded one is at least this old, in seconds. */
export const noteUseSeconds = minute
/** Most tokens of one maker and of an organization, and most repositories that one token names. */
export const most = { ofMaker: 100, ofOrganization: 10_000, repos: 50 } as const

/** Data of a valid push token that each request needs. */
export type LivePushToken = {
  identityUid: string
  narrowing: Grants
  /** Actor of requests, as in events. */
  act: Readonly<Record<string, string>>
}

/** Cache of valid push tokens, at most half a second old. */
export type CachedPushTokens = {
  /** Valid token of this uid. Undefined if it was revoked, has expired, or no provider vouches for its maker any more. */
  of(uid: string): Promise<LivePushToken | undefined>
  /** Clears the cache. Results of reads that are in progress are not cached either. */
  clear(): void
}
