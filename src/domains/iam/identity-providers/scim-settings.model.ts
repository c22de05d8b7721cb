import { hash, timingSafeEqual } from 'node:crypto'
import { kindOf } from '#lib/events/event-body.ts'
import { duration } from '#lib/wire.ts'

/** The SCIM endpoint of an identity provider, from its first token on. Of tokens only SHA-256 is kept, in hex. */
export type ScimSettings = {
  enabled: boolean
  /** Another one after each change. */
  etag: string
  /** Empty once the token was revoked. */
  tokenHash: string
  /** Empty for a token that never expires. */
  tokenExpireTime: string
  /** The token before, as long as both work; empty for none. */
  previousHash: string
  previousExpireTime: string
}

/** The contract's CredentialState. */
export const credentialStates = { notIssued: 1, live: 2, expired: 3, revoked: 4, rotating: 5 } as const

/** What a token was issued for; the token itself is not part of it. */
export type IssuedToken = {
  provider: string
  etag: string
  /** Empty when it never expires. */
  expireTime: string
  /** Empty when no older token works any more. */
  previousExpireTime: string
  /** In milliseconds. */
  overlap: number
}

export type ScimState = { provider: string; etag: string; enabled: boolean; time: string }

export const aScimToken = kindOf<IssuedToken>('scimToken')
export const aScimState = kindOf<ScimState>('scimState')

const prefix = 'pfscim_'

/** How long a token lives, at most and by default, and how long the one before it may linger; in milliseconds. */
export const tokenTimes = {
  standard: 365 * 24 * 3600_000,
  longest: 2 * 365 * 24 * 3600_000,
  overlap: 3600_000,
  longestOverlap: 24 * 3600_000,
}

/** The text of a token with 256 bits of chance. */
export function tokenText(random: Uint8Array): string {
  return prefix + Buffer.from(random).toString('hex')
}

/** What is kept of a token. */
export function tokenHashOf(token: string): string {
  return hash('sha256', token)
}

/** Whether the token, or the one before it, opens the endpoint now. */
export function opens(
  { tokenHash, tokenExpireTime, previousHash, previousExpireTime }: ScimSettings,
  token: string,
  now: string,
): boolean {
  const given = tokenHashOf(token)
  // Both are compared, so that the time taken tells nothing.
  const isCurrent = isSame(given, tokenHash) && (tokenExpireTime === '' || tokenExpireTime > now)
  const isPrevious = isSame(given, previousHash) && previousExpireTime > now
  return isCurrent || isPrevious
}

function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}

/** What there is to tell about the tokens at a time; times are empty where they are not set. */
export function describeTokens(
  settings: ScimSettings | undefined,
  now: string,
): { state: number; expireTime: string; previousExpireTime: string } {
  if (!settings) return { state: credentialStates.notIssued, expireTime: '', previousExpireTime: '' }
  const { tokenHash, tokenExpireTime } = settings
  const previousExpireTime = settings.previousExpireTime > now ? settings.previousExpireTime : ''
  const stateNow = (): number => {
    if (tokenHash === '') return credentialStates.revoked
    if (tokenExpireTime !== '' && tokenExpireTime <= now) return credentialStates.expired
    return previousExpireTime === '' ? credentialStates.live : credentialStates.rotating
  }
  return { state: stateNow(), expireTime: tokenHash === '' ? '' : tokenExpireTime, previousExpireTime }
}

/** What is shown of an endpoint; `now` where the state of its tokens is to be shown too. */
export type Shown = { url: string; now?: string }

/** Members of the contract's SCIM messages. */
export function describeScim(provider: string, settings: ScimSettings | undefined, { url, now }: Shown) {
  const tokens =
    now === undefined ? { state: 0, expireTime: '', previousExpireTime: '' } : describeTokens(settings, now)
  return {
    enabled: settings?.enabled ?? false,
    endpointUrl: settings && url !== '' ? endpointOf(url, provider) : '',
    credentialState: tokens.state,
    etag: settings?.etag ?? '',
    tokenExpireTime: tokens.expireTime || undefined,
    previousTokenExpireTime: tokens.previousExpireTime || undefined,
  }
}

/** Members that all answers about a new token have; events tell neither the token nor the address. */
export function describeIssued({ provider, etag, expireTime, token = '' }: IssuedToken & { token?: string }, url = '') {
  const endpointUrl = url === '' ? '' : endpointOf(url, provider)
  return { provider, token, endpointUrl, etag, expireTime: expireTime || undefined }
}

/** The same with the members for a token that has replaced another one. */
export function describeReplaced(issued: IssuedToken & { token?: string }, url = '') {
  const { previousExpireTime, overlap } = issued
  const previousTokenExpireTime = previousExpireTime || undefined
  return { ...describeIssued(issued, url), requestedOverlap: duration(overlap), previousTokenExpireTime }
}

/** Where the provider finds the endpoint, as SCIM clients want it: without a slash at the end. */
export function endpointOf(url: string, provider: string): string {
  return `${url}/scim/v2/${provider}`
}
