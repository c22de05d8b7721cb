import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import type { Grants } from '../access/grants.model.ts'

/** `browser`: authenticated by a cookie. `client`: authenticated by an access token, possibly with a refresh token. */
export type SessionKind = 'browser' | 'client'

/** Profile of a person from the sign-in provider. */
export type Profile = { name: string; picture: string; email: string; emailVerified: boolean }

/** Groups and dotted capabilities to which a program has limited its session. An empty list is no limit. */
export type SessionBound = { scopes: readonly string[]; capabilities: readonly string[] }

/** Role from an external group, for one session. */
export type GroupRole = { scope: string; roleUid: string; externalGroupId: string }

/** Session of a signed-in person or of the operator, with its limits. */
export type Session = {
  /** Uid, below the uid of the person. */
  uid: string
  identityUid: string
  kind: SessionKind
  /** Uid of an organization's provider, or name of a provider in the settings. Empty for the operator. */
  provider: string
  /** Organization of the provider, to which the session is limited. Empty if the provider is in the settings. */
  organization: string
  /** Claim `sid` of the ID token: the provider's ID for its own session. Empty if the provider does not send it. */
  upstreamSid: string
  /** External ID of the person, as in SCIM. Empty for none. */
  externalId: string
  /** Issuer, subject and audience of the ID token. */
  act: Readonly<Record<string, string>>
  profile: Profile
  /** Capability masks from external groups, by group. */
  granted: ReadonlyMap<string, bigint>
  /** Roles from external groups that `granted` was made of. */
  groupRoles: readonly GroupRole[]
  /** Limits of all tokens of the session. */
  bound?: SessionBound | undefined
  /** Time of the person's sign-in at the provider, in seconds since 1970. 0 if unknown. */
  authTime: number
  source: string
  userAgent: string
  createTime: string
  lastUsedTime: string
  /** Time at which the session ends if it is not used before. Each use moves this time. */
  endTime: string
  /** Time at which the session ends, even if it is used. */
  expireTime: string
}

export const sessionType = 'iam.pinfold.dev/Session'

/** Event resources: the start of a session, and the end of a session with the reason. */
export const toSignInResource = kindOf<SignIn>('sign-in')
export const toSessionEndResource = kindOf<EndedSession>('session-end')
export type SignIn = { session: Session; groupRoles: readonly GroupRole[]; groupsLeftOut: boolean }
export type EndReason =
  | 'signed-out'
  | 'ended'
  | 'provider'
  | 'reused'
  | 'too-many'
  | 'deactivated'
  | 'deleted'
  | 'provider-removed'
export type EndedSession = { session: Session; reason: EndReason }

export const sessionFields = {
  uid: { column: 'uid', sort: true },
} as const satisfies Fields<Session>

const [minute, hour, day] = [60, 60 * 60, 24 * 60 * 60]

/** Longest time between two uses, and longest duration of a session, in seconds. */
export const lifetimes = {
  browser: { idle: 8 * hour, most: 24 * hour },
  operator: { idle: hour, most: hour },
  /** For sessions with roles from external groups, and for clients without a refresh token. */
  brief: { idle: hour, most: hour },
  refreshed: { idle: 30 * day, most: 90 * day },
} as const
export type Lifetime = keyof typeof lifetimes

/** Seconds within which a person must finish a sign-in at the provider, and lifetime of a code for the operator's browser. */
export const attemptSeconds = 10 * minute
export const consoleCodeSeconds = 5 * minute
/** Seconds for which the previous refresh token still works. A client that did not receive the response can retry. */
export const predecessorSeconds = 10
/**
 * Lifetime of a device code, first interval between polls, increase after each too early poll, and longest interval. All are in
 * seconds.
 */
export const deviceSeconds = 15 * minute
export const pollSeconds = { first: 5, more: 5, most: 60 }
/**
 * Most device codes that wait for an answer: from one network, from one IPv6 /48 (usually one customer), and in total. `maxAsked`
 * is the longest stored request of a program, in characters.
 */
export const maxDevices = { ofNetwork: 50, ofSite: 200, all: 10_000 }
export const maxAsked = 4096
/**
 * Lifetime of an authorization code for a loopback redirect, in seconds. A used code stays stored for `rememberedSeconds`, so
 * that a second use is detected.
 */
export const signInCodeSeconds = minute
export const rememberedSeconds = 10 * minute
/**
 * Seconds for which a headless sign-in waits for its program. `maxHeadless` is how many can wait: for one person, and in total.
 */
export const headlessSeconds = 10 * minute
export const maxHeadless = { ofIdentity: 20, all: 10_000 }

/** A use is recorded if the last recorded use is at least this old, in seconds. */
export const noteUseSeconds = minute
/**
 * A session whose provider was removed from the settings is invalid at once. Its row is deleted after this time without use, in
 * seconds. During a restart with new settings, another server may still accept the provider.
 */
export const untrustedSeconds = hour

/**
 * Most sessions of one person. With more, the oldest sessions end. Sessions that are limited to an organization are counted
 * separately.
 */
export const maxSessions = 100
/** Most started sign-ins, most logout tokens, and most codes that are stored. */
export const maxWaiting = 100_000

/** Part of a session that each request with an access token needs. */
export type LiveSession = Pick<Session, 'provider' | 'organization' | 'act' | 'granted'> & {
  /** Current grants from groups that the provider has provisioned over SCIM. */
  pushed: Grants
}

/** Cache of active sessions. Entries are at most half a second old. */
export type CachedSessions = {
  /** Active session of this uid. Undefined if it has ended, or if its provider was removed from the settings. */
  of(uid: string): Promise<LiveSession | undefined>
  /** Clears the cache. Reads in progress do not fill it again. */
  clear(): void
}

export type Trusted = { issuer: string; name?: string | undefined; label?: string | undefined }

/**
 * True if the session's provider is still trusted. A provider in the settings must still be there with the same issuer. Other
 * sessions are always trusted: those of the operator, and those of an organization's provider, which end when the provider is
 * deleted.
 */
export function isStillTrusted(
  { provider, organization, act }: Pick<Session, 'provider' | 'organization' | 'act'>,
  trusted: readonly Trusted[],
): boolean {
  if (organization !== '' || provider === '') return true
  const found = trusted.find(({ name, label }) => label !== undefined && name === provider)
  return found !== undefined && found.issuer === act.iss
}

/** Names of the providers in the settings that the sign-in page offers. */
export function trustedNames(trusted: readonly Trusted[]): string[] {
  return trusted.flatMap(({ name, label }) => (label !== undefined && name !== undefined ? [name] : []))
}
