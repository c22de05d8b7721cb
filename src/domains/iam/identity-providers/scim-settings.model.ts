import { hash, timingSafeEqual } from 'node:crypto'
import { kindOf } from '#lib/events/event-body.ts'
import { duration } from '#lib/wire.ts'

/** SCIM endpoint of an identity provider, from its first token on. Tokens are stored as SHA-256, in hex. */
export type ScimSettings = {
  enabled: boolean
  /** Changes with each update. */
  etag: string
  /** Empty after the token was revoked. */
  tokenHash: string
  /** Empty for a token that never expires. */
  tokenExpireTime: string
  /** Previous token while both are valid. Empty for none. */
  previousHash: string
  previousExpireTime: string
}

/** CredentialState of the contract. */
const credentialStates = { notIssued: 1, live: 2, expired: 3, revoked: 4, rotating: 5 } as const

/** Description of a new token, without its text. */
export type IssuedToken = {
  provider: string
  etag: string
  /** Empty if the token never expires. */
  expireTime: string
  /** Empty if no previous token is valid. */
  previousExpireTime: string
  /** In milliseconds. */
  overlap: number
}

export type ScimState = { provider: string; etag: string; enabled: boolean; time: string }

export const toScimTokenResource = kindOf<IssuedToken>('scimToken')
export const toScimStateResource = kindOf<ScimState>('scimState')

const prefix = 'pfscim_'

/** Default and longest life of a token, and of its predecessor after the rotation, in milliseconds. */
export const tokenTimes = {
  standard: 365 * 24 * 3600_000,
  longest: 2 * 365 * 24 * 3600_000,
  overlap: 3600_000,
  longestOverlap: 24 * 3600_000,
}

/** Text of a token with 256 random bits. */
export function tokenText(random: Uint8Array): string {
  return prefix + Buffer.from(random).toString('hex')
}

/** Hash of a token, as stored. */
export function tokenHashOf(token: string): string {
  return hash('sha256', token)
}

/** True if the token is the current one or its predecessor, and valid now. */
export function opens(
  { tokenHash, tokenExpireTime, previousHash, previousExpireTime }: ScimSettings,
  token: string,
  now: string,
): boolean {
  const given = tokenHashOf(token)
  // Both are compared, so that the time taken reveals nothing.
  const isCurrent = isSame(given, tokenHash) && (tokenExpireTime === '' || tokenExpireTime > now)
  const isPrevious = isSame(given, previousHash) && previousExpireTime > now
  return isCurrent || isPrevious
}

function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}

/** State of the tokens at a time. Times that are not set are empty. */
function describeTokens(
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

/** Options of the description of an endpoint. The state of its tokens is included if `now` is set. */
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

/** Members that all responses about a new token have. Events have neither the token nor the address. */
export function describeIssued({ provider, etag, expireTime, token = '' }: IssuedToken & { token?: string }, url = '') {
  const endpointUrl = url === '' ? '' : endpointOf(url, provider)
  return { provider, token, endpointUrl, etag, expireTime: expireTime || undefined }
}

/** Members of `describeIssued`, with those for a token that has replaced another one. */
export function describeReplaced(issued: IssuedToken & { token?: string }, url = '') {
  const { previousExpireTime, overlap } = issued
  const previousTokenExpireTime = previousExpireTime || undefined
  return { ...describeIssued(issued, url), requestedOverlap: duration(overlap), previousTokenExpireTime }
}

/** URL of the endpoint without a slash at the end, as SCIM clients expect it. */
export function endpointOf(url: string, provider: string): string {
  return `${url}/scim/v2/${provider}`
}
