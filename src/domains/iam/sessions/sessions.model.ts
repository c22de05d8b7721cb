import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import type { Grants } from '../access/grants.model.ts'

/** A browser shows a cookie; a client has an access token, and perhaps a refresh token. */
export type SessionKind = 'browser' | 'client'

/** What a sign-in provider has said of a person. */
export type Profile = { name: string; picture: string; email: string; emailVerified: boolean }

/** What a program was let in for, as it was asked: places and dotted capabilities; an empty list bounds nothing. */
export type SessionBound = { scopes: readonly string[]; capabilities: readonly string[] }

/** That somebody is signed in, and as far as what. */
export type Session = {
  /** Below the uid of the person. */
  uid: string
  identityUid: string
  kind: SessionKind
  /** The uid of an organisation's provider, the name of one of the settings, or empty for the operator. */
  provider: string
  /** The organisation whose provider vouches for the person, beyond which the session reaches nothing; empty for none. */
  organization: string
  /** The `sid` of the provider's own session; empty when it says none. */
  upstreamSid: string
  /** What the provider calls the person over SCIM; empty for none. */
  externalId: string
  /** Issuer, subject and audience of the ID token. */
  act: Readonly<Record<string, string>>
  profile: Profile
  /** Capability masks by place that the person's external groups add. */
  granted: ReadonlyMap<string, bigint>
  /** None of its tokens is good for more. */
  bound?: SessionBound | undefined
  /** When the person showed the provider who they are, in seconds since 1970; 0 when it does not say. */
  authTime: number
  source: string
  userAgent: string
  createTime: string
  lastUsedTime: string
  /** When it ends unless it is used before. */
  endTime: string
  /** When it ends however much it is used. */
  expireTime: string
}

export const sessionType = 'iam.pinfold.dev/Session'

/** A sign-in, and the end of a session with why it came. */
export const aSignIn = kindOf<SignIn>('sign-in')
export const aSessionEnd = kindOf<EndedSession>('session-end')
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

/** In seconds: how long a session may be unused, and how long it lasts at most. */
export const lifetimes = {
  browser: { idle: 8 * hour, most: 24 * hour },
  operator: { idle: hour, most: hour },
  /** With roles of external groups; and of a client without a refresh token. */
  brief: { idle: hour, most: hour },
  refreshed: { idle: 30 * day, most: 90 * day },
} as const
export type Lifetime = keyof typeof lifetimes

/** How long the provider may take to send a person back, and how long a code for the operator's browser is good. */
export const attemptSeconds = 10 * minute
export const consoleCodeSeconds = 5 * minute
/** How long the predecessor of a refresh token goes on working, for clients that did not get the answer. */
export const predecessorSeconds = 10
/** How long a program waits for a person who types its code, how often it may ask, and by how much too often slows it down. */
export const deviceSeconds = 15 * minute
export const pollSeconds = { first: 5, more: 5, most: 60 }
/**
 * How many programs may wait at once: of one network, of the /48 that a provider gives one customer where that is IPv6, and
 * in all. And how many characters are kept of what one asks for.
 */
export const maxDevices = { ofNetwork: 50, ofSite: 200, all: 10_000 }
export const maxAsked = 4096
/** How long the code of a program on loopback is good, and how long it is remembered for whoever shows it again. */
export const signInCodeSeconds = minute
export const rememberedSeconds = 10 * minute
/** How long the answer to a program without a browser waits for it, and how many of them wait at most, of one person and in all. */
export const headlessSeconds = 10 * minute
export const maxHeadless = { ofIdentity: 20, all: 10_000 }

/** A use is noted when the last one is this old. */
export const noteUseSeconds = minute
/**
 * A session whose provider the settings do not name is no good at once, and ends when nobody has used it for so long: while
 * settings change, another node may name the provider.
 */
export const untrustedSeconds = hour

/** How many sessions one person may have; the oldest give way. Of one organisation's provider, they are counted apart. */
export const maxSessions = 100
/** How many sign-ins may have begun, and how many logout tokens and codes are remembered. */
export const maxWaiting = 100_000

/** What counts for each request that a session's access token is shown with. */
export type LiveSession = Pick<Session, 'provider' | 'organization' | 'act' | 'granted'> & {
  /** Present grants of the person's groups that the provider has pushed over SCIM. */
  pushed: Grants
}

/** Which sessions have not been ended, as far as the last half second knows. */
export type CachedSessions = {
  /** `undefined` when it has been ended, also by the settings that do not name its provider any more. */
  of(uid: string): Promise<LiveSession | undefined>
  /** Forgets everything, also what is being read. */
  clear(): void
}

export type Trusted = { issuer: string; name?: string | undefined; label?: string | undefined }

/** Whether the settings still name the provider that vouches for the session; those of organisations end with a provider. */
export function isStillTrusted(
  { provider, organization, act }: Pick<Session, 'provider' | 'organization' | 'act'>,
  trusted: readonly Trusted[],
): boolean {
  if (organization !== '' || provider === '') return true
  const found = trusted.find(({ name, label }) => label !== undefined && name === provider)
  return found !== undefined && found.issuer === act.iss
}

/** The names of the providers that people can sign in with by the settings. */
export function trustedNames(trusted: readonly Trusted[]): string[] {
  return trusted.flatMap(({ name, label }) => (label !== undefined && name !== undefined ? [name] : []))
}
