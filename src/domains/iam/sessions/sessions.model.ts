import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import type { Grants } from '../access/grants.model.ts'

/** A browser sends a cookie. A client has an access token, and may have a refresh token. */
export type SessionKind = 'browser' | 'client'

/** Profile of a person from the sign-in provider. */
export type Profile = { name: string; picture: string; email: string; emailVerified: boolean }

/** Limits that a program requested for its session: groups and dotted capabilities. An empty list sets no limit. */
export type SessionBound = { scopes: readonly string[]; capabilities: readonly string[] }

/** Session of a signed-in person or of the operator, with its limits. */
export type Session = {
  /** Below the uid of the person. */
  uid: string
  identityUid: string
  kind: SessionKind
  /** Uid of an organization's provider, or name of a provider of the settings. Empty for the operator. */
  provider: string
  /** Organization whose provider vouches for the person. The session has no rights outside of it. Empty for none. */
  organization: string
  /** `sid` of the provider's own session. Empty if the provider sends none. */
  upstreamSid: string
  /** External ID of the person at the provider, as in SCIM. Empty for none. */
  externalId: string
  /** Issuer, subject and audience of the ID token. */
  act: Readonly<Record<string, string>>
  profile: Profile
  /** Capability masks that the person's external groups add, by group. */
  granted: ReadonlyMap<string, bigint>
  /** Limits of all tokens of the session. */
  bound?: SessionBound | undefined
  /** Time of the person's sign-in at the provider, in seconds since 1970. 0 if the provider does not report it. */
  authTime: number
  source: string
  userAgent: string
  createTime: string
  lastUsedTime: string
  /** End of the session unless it is used before. */
  endTime: string
  /** End of the session, however often it is used. */
  expireTime: string
}

export const sessionType = 'iam.pinfold.dev/Session'

/** Event resources: a sign-in, and the end of a session with its reason. */
export const toSignInResource = kindOf<SignIn>('sign-in')
export const toSessionEndResource = kindOf<EndedSession>('session-end')
/** A role that an external group gives for one session. */
export type GroupRole = { scope: string; roleUid: string; externalGroupId: string }
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

/** Longest idle time and longest life of a session, in seconds. */
export const lifetimes = {
  browser: { idle: 8 * hour, most: 24 * hour },
  operator: { idle: hour, most: hour },
  /** For sessions with roles of external groups, and for clients without a refresh token. */
  brief: { idle: hour, most: hour },
  refreshed: { idle: 30 * day, most: 90 * day },
} as const
export type Lifetime = keyof typeof lifetimes

/** Longest time of a sign-in at the provider, and life of a code for the operator's browser, in seconds. */
export const attemptSeconds = 10 * minute
export const consoleCodeSeconds = 5 * minute
/** Time for which the predecessor of a refresh token stays valid, in seconds, for clients that did not get the response. */
export const predecessorSeconds = 10
/** Life of a device code, interval of polls, and its extension after polling too often, in seconds. */
export const deviceSeconds = 15 * minute
export const pollSeconds = { first: 5, more: 5, most: 60 }
/**
 * Most programs that wait at once: of one network, of one IPv6 /48 (usually one customer), and in total. `maxAsked` is the
 * longest stored request of a program, in characters.
 */
export const maxDevices = { ofNetwork: 50, ofSite: 200, all: 10_000 }
export const maxAsked = 4096
/** Life of the code of a program on loopback, and time for which a used code is remembered to detect its reuse, in seconds. */
export const signInCodeSeconds = minute
export const rememberedSeconds = 10 * minute
/** Time for which a headless sign-in waits for its program, in seconds; and most of them, of one person and in total. */
export const headlessSeconds = 10 * minute
export const maxHeadless = { ofIdentity: 20, all: 10_000 }

/** A use is recorded if the last recorded one is at least this old, in seconds. */
export const noteUseSeconds = minute
/**
 * Idle time after which a session ends if the settings do not name its provider, in seconds. Such a session is invalid at once,
 * but while settings change, another node may still name the provider.
 */
export const untrustedSeconds = hour

/** Most sessions of one person; beyond it the oldest end. Sessions of each organization's provider are counted separately. */
export const maxSessions = 100
/** Most unfinished sign-ins, and most logout tokens and codes that are stored. */
export const maxWaiting = 100_000

/** Data of a session that each request with its access token needs. */
export type LiveSession = Pick<Session, 'provider' | 'organization' | 'act' | 'granted'> & {
  /** Present grants of the person's groups that the provider has pushed over SCIM. */
  pushed: Grants
}

/** Cache of active sessions, at most half a second old. */
export type CachedSessions = {
  /** Active session of this uid. Undefined if it has ended, or if the settings do not name its provider any more. */
  of(uid: string): Promise<LiveSession | undefined>
  /** Clears the cache. Results of reads that are in progress are not cached either. */
  clear(): void
}

export type Trusted = { issuer: string; name?: string | undefined; label?: string | undefined }

/**
 * True if the settings still name the session's provider, or if it needs none: the operator's, or of an organization. Sessions of
 * organizations end with their provider.
 */
export function isStillTrusted(
  { provider, organization, act }: Pick<Session, 'provider' | 'organization' | 'act'>,
  trusted: readonly Trusted[],
): boolean {
  if (organization !== '' || provider === '') return true
  const found = trusted.find(({ name, label }) => label !== undefined && name === provider)
  return found !== undefined && found.issuer === act.iss
}

/** Names of the sign-in providers of the settings. */
export function trustedNames(trusted: readonly Trusted[]): string[] {
  return trusted.flatMap(({ name, label }) => (label !== undefined && name !== undefined ? [name] : []))
}
