import { hash, timingSafeEqual } from 'node:crypto'
import { kindOf } from '#lib/events/event-body.ts'
import { duration } from '#lib/wire.ts'

/** SCIM settings of an identity provider. They exist from the first token on. Tokens are stored as SHA-256, in hex. */
export type ScimSettings = {
  enabled: boolean
  /** Etag of the settings. Changes with each update. */
  etag: string
  /** Hash of the current token. Empty after a revocation. */
  tokenHash: string
  /** Expiry of the current token. Empty if the token never expires. */
  tokenExpireTime: string
  /** Hash of the previous token while both are valid. Empty if there is none. */
  previousHash: string
  previousExpireTime: string
}

/** Numbers of CredentialState in the contract. */
const credentialStates = { notIssued: 1, live: 2, expired: 3, revoked: 4, rotating: 5 } as const

/** Data about a new token, without its text. */
export type IssuedToken = {
  provider: string
  etag: string
  /** Empty if the token never expires. */
  expireTime: string
  /** Expiry of the previous token. Empty if only the new token is valid. */
  previousExpireTime: string
  /** Requested overlap of both tokens, in milliseconds. */
  overlap: number
}

export type ScimState = { provider: string; etag: string; enabled: boolean; time: string }

export const toScimTokenResource = kindOf<IssuedToken>('scimToken')
export const toScimStateResource = kindOf<ScimState>('scimState')

const prefix = 'pfscim_'

/** Default and longest lifetime of a token, and default and longest overlap with its predecessor. All are in milliseconds. */
export const tokenTimes = {
  standard: 365 * 24 * 3600_000,
  longest: 2 * 365 * 24 * 3600_000,
  overlap: 3600_000,
  longestOverlap: 24 * 3600_000,
}

/** Text of a token, from 256 random bits. */
export function tokenText(random: Uint8Array): string {
  return prefix + Buffer.from(random).toString('hex')
}

/** Hash of a token, as stored. */
export function tokenHashOf(token: string): string {
  return hash('sha256', token)
}

/** True if the token is the current or the previous one, and has not expired. */
export function opens(
  { tokenHash, tokenExpireTime, previousHash, previousExpireTime }: ScimSettings,
  token: string,
  now: string,
): boolean {
  const given = tokenHashOf(token)
  // Both hashes are compared in any case, so that the duration of the check reveals nothing.
  const isCurrent = isSame(given, tokenHash) && (tokenExpireTime === '' || tokenExpireTime > now)
  const isPrevious = isSame(given, previousHash) && previousExpireTime > now
  return isCurrent || isPrevious
}

function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}

/** State of the tokens. Members for times that do not apply are empty. */
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

/** Options for `describeScim`. With `now`, the state of the tokens is included. */
export type Shown = { url: string; now?: string }

/** Members of a SCIM message in the contract. */
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

/** Members of a response about a new token. For events, token and URL are empty. */
export function describeIssued({ provider, etag, expireTime, token = '' }: IssuedToken & { token?: string }, url = '') {
  const endpointUrl = url === '' ? '' : endpointOf(url, provider)
  return { provider, token, endpointUrl, etag, expireTime: expireTime || undefined }
}

/** Members of a response about a token that has replaced another one. */
export function describeReplaced(issued: IssuedToken & { token?: string }, url = '') {
  const { previousExpireTime, overlap } = issued
  const previousTokenExpireTime = previousExpireTime || undefined
  return { ...describeIssued(issued, url), requestedOverlap: duration(overlap), previousTokenExpireTime }
}

/** SCIM URL of a provider. It has no slash at the end, since SCIM clients append one. */
export function endpointOf(url: string, provider: string): string {
  return `${url}/scim/v2/${provider}`
}
