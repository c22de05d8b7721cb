import { kindOf } from '#lib/events/event-body.ts'
import { type Fields, maxNameLength, namePattern } from '#lib/fields.ts'
import type { Grants } from '../access/grants.model.ts'

/** A password for the registry that acts as whoever made it, as far as they may themselves, and no further than it says. */
export type PushToken = {
  /** Below the uid of the maker. */
  uid: string
  /** The maker, which may be the operator. */
  identityUid: string
  /** What it is used with as the user name. */
  userName: string
  name: string
  /** The group that it reaches, with what is below. */
  group: string
  /** Only these repositories of the group; all when empty. */
  repos: readonly string[]
  /** It pushes too. */
  push: boolean
  /** Through whom the maker had signed in, as their session says; empty for none. */
  provider: string
  organization: string
  externalId: string
  issuer: string
  /** The session that it was made in; empty for none. */
  sessionUid: string
  createTime: string
  expireTime: string
  /** Empty before its first use. */
  lastUsedTime: string
  lastUsedFrom: string
}

export const pushTokenType = 'iam.pinfold.dev/PushToken'

export const aPushToken = kindOf<PushToken>('push-token')
/** `session`: with the session that it was made in, by somebody who may not be its maker. */
export type RevokeReason = 'revoked' | 'provider' | 'session'
export type RevokedPushToken = { token: PushToken; reason: RevokeReason }
export const aRevokedPushToken = kindOf<RevokedPushToken>('revoked-push-token')

export const pushTokenFields = {
  uid: { column: 'uid', sort: true },
  name: { column: 'name', required: true, pattern: namePattern, maxLength: maxNameLength },
} as const satisfies Fields<PushToken>

const [minute, hour, day] = [60, 60 * 60, 24 * 60 * 60]

/** In seconds: how long one may be good, and how long unless somebody says. */
export const life = { least: hour, most: 365 * day, usual: 30 * day } as const
/** How long an expired one is still listed. */
export const keptSeconds = 30 * day
/** A use is noted when the last one is this old. */
export const noteUseSeconds = minute
/** How many one maker may have, how many an organisation, and how many repositories one may name. */
export const most = { ofMaker: 100, ofOrganization: 10_000, repos: 50 } as const

/** What counts for each request with it. */
export type LivePushToken = {
  identityUid: string
  narrowing: Grants
  /** By what the maker acts, as events tell it. */
  act: Readonly<Record<string, string>>
}

/** Which push tokens are good, at most half a second old. */
export type CachedPushTokens = {
  /** `undefined` when it has been revoked, or has expired, or nobody vouches for its maker any more. */
  of(uid: string): Promise<LivePushToken | undefined>
  /** Forgets everything, also what is being read. */
  clear(): void
}
