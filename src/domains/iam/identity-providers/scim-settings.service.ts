// SCIM settings of an identity provider: its token, and whether SCIM is enabled. One token is valid, or two during a rotation.
// Each change creates a new etag.
import { randomBytes } from 'node:crypto'
import type { Call } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { AppError, failedPrecondition, invalid, notFound } from '#lib/errors.ts'
import type { Resource } from '#lib/events/event-body.ts'
import { parentOf } from '#lib/uid.ts'
import { requireRecentSignIn } from '../access/requirements.ts'
import { ownersOf } from '../roles/owners.service.ts'
import { identityProviderType } from './identity-providers.model.ts'
import { requireMappedRoles, requireProvider } from './identity-providers.service.ts'
import { saveSettings } from './identity-providers.store.ts'
import {
  type IssuedToken,
  type ScimSettings,
  type ScimState,
  tokenHashOf,
  tokenText,
  tokenTimes,
  toScimStateResource,
  toScimTokenResource,
} from './scim-settings.model.ts'

/** Requested expiry of a token: a time, never, or by default after one year. */
export type Life = { expireTime: string | undefined; neverExpires: boolean }

/**
 * Creates the first SCIM token of a provider. The text of the token is returned only here. Throws FAILED_PRECONDITION if a token
 * was created before.
 */
export async function generateScimToken(
  call: Call,
  provider: string,
  life: Life,
): Promise<IssuedToken & { token: string }> {
  requireRecentSignIn(call)
  const expireTime = endOf(call, life)
  const token = tokenText(randomBytes(32))
  const issued = await call.app.db.tx(async (tx) => {
    if ((await requireProvider(tx, provider)).scim) {
      throw failedPrecondition({
        type: 'SCIM_TOKEN_ISSUED',
        subject: provider,
        description: 'the identity provider already has a SCIM token; regenerate it instead',
      })
    }
    await requireMappedRoles(tx, call, provider)
    const settings = await save(tx, provider, {
      enabled: false,
      tokenHash: tokenHashOf(token),
      tokenExpireTime: expireTime,
      previousHash: '',
      previousExpireTime: '',
    })
    const issued = { provider, etag: settings.etag, expireTime, previousExpireTime: '', overlap: 0 }
    await emitChange(tx, call, 'iam.identity_providers.scim_token.generated', provider, toScimTokenResource(issued))
    return issued
  })
  call.log.info('scim token generated', { provider })
  return { ...issued, token }
}

/** Replaces the SCIM token. The previous token stays valid for `overlap` milliseconds, but not after its own expiry. */
export async function regenerateScimToken(
  call: Call,
  provider: string,
  life: Life,
  { etag, overlap = tokenTimes.overlap }: { etag: string; overlap: number | undefined },
): Promise<IssuedToken & { token: string }> {
  requireRecentSignIn(call)
  requireEtag(etag)
  if (overlap < 0) throw invalid({ field: 'overlap', description: 'must not be negative' })
  const expireTime = endOf(call, life)
  const token = tokenText(randomBytes(32))
  const issued = await call.app.db.tx(async (tx) => {
    const before = await requireSettings(tx, provider, etag)
    await requireMappedRoles(tx, call, provider)
    const lingers = previousTokenExpiry(before, Math.min(overlap, tokenTimes.longestOverlap), call.now)
    const { etag: next } = await save(tx, provider, {
      enabled: before.enabled,
      tokenHash: tokenHashOf(token),
      tokenExpireTime: expireTime,
      previousHash: lingers === '' ? '' : before.tokenHash,
      previousExpireTime: lingers,
    })
    const issued = { provider, etag: next, expireTime, previousExpireTime: lingers, overlap }
    await emitChange(tx, call, 'iam.identity_providers.scim_token.regenerated', provider, toScimTokenResource(issued))
    return issued
  })
  call.log.info('scim token regenerated', { provider })
  return { ...issued, token }
}

/** Revokes all SCIM tokens of a provider. Needs no etag, so that a revocation always works. SCIM stays enabled or disabled. */
export async function revokeScimToken(call: Call, provider: string): Promise<ScimState> {
  const state = await call.app.db.tx(async (tx) => {
    const before = await requireSettings(tx, provider)
    const none = { tokenHash: '', tokenExpireTime: '', previousHash: '', previousExpireTime: '' }
    const { enabled, etag } = await save(tx, provider, { enabled: before.enabled, ...none })
    const state = { provider, etag, enabled, time: call.now }
    await emitChange(tx, call, 'iam.identity_providers.scim_token.revoked', provider, toScimStateResource(state))
    return state
  })
  call.log.info('scim token revoked', { provider })
  return state
}

/**
 * Enables or disables SCIM for a provider. To enable it, the organization needs at least two owners; otherwise throws
 * FAILED_PRECONDITION. With two owners, one can undo what the provider does to the other.
 */
export async function setScimEnabled(
  call: Call,
  provider: string,
  { enabled, etag }: { enabled: boolean; etag: string },
): Promise<ScimState> {
  requireEtag(etag)
  const state = await call.app.db.tx(async (tx) => {
    const before = await requireSettings(tx, provider, etag)
    if (enabled) await requireMappedRoles(tx, call, provider)
    if (enabled && (await ownersOf(tx, parentOf(provider), neededOwners)) < neededOwners) {
      throw failedPrecondition({
        type: 'TOO_FEW_OWNERS',
        subject: parentOf(provider),
        description: `the organization needs at least ${neededOwners} direct owners; grant the owner role to another member first`,
      })
    }
    const after = await save(tx, provider, { ...before, enabled })
    const state = { provider, etag: after.etag, enabled, time: call.now }
    await emitChange(tx, call, 'iam.identity_providers.scim_enabled.updated', provider, toScimStateResource(state))
    return state
  })
  call.log.info('scim endpoint enabled or disabled', { provider, enabled })
  return state
}

const neededOwners = 2

function requireEtag(etag: string): void {
  if (etag === '') throw invalid({ field: 'etag', description: 'etag is required' })
}

/** SCIM settings of a provider. Throws NOT_FOUND if no token was created yet, and ABORTED if the etag differs. */
async function requireSettings(reader: Reader, provider: string, etag?: string): Promise<ScimSettings> {
  const { scim } = await requireProvider(reader, provider)
  if (!scim) throw notFound(identityProviderType, `${provider} with a SCIM token`)
  if (etag !== undefined && etag !== scim.etag) {
    throw new AppError('ABORTED', 'the SCIM settings were changed by another request; read them again', {
      reason: 'ETAG_MISMATCH',
    })
  }
  return scim
}

async function save(tx: Tx, provider: string, settings: Omit<ScimSettings, 'etag'>): Promise<ScimSettings> {
  const saved = { ...settings, etag: randomBytes(8).toString('hex') }
  await saveSettings(tx, provider, saved)
  return saved
}

async function emitChange(
  tx: Tx,
  call: Call,
  name: Parameters<typeof emit>[2],
  provider: string,
  resource: Resource,
): Promise<void> {
  await emit(tx, call, name, { subject: provider, resource })
}

/** Expiry of a new token. Empty if the token never expires. */
function endOf({ now }: Call, { expireTime, neverExpires }: Life): string {
  const field = 'expire_time'
  if (neverExpires) {
    if (expireTime !== undefined) throw invalid({ field, description: 'cannot be set together with never_expires' })
    return ''
  }
  const latest = after(now, tokenTimes.longest)
  if (expireTime === undefined) return after(now, tokenTimes.standard)
  if (expireTime <= now) throw invalid({ field, description: 'must be in the future' })
  if (expireTime > latest) throw invalid({ field, description: 'must be at most two years from now' })
  return expireTime
}

/** Expiry of the replaced token. Empty if the replaced token ends now. */
function previousTokenExpiry({ tokenHash, tokenExpireTime }: ScimSettings, overlap: number, now: string): string {
  const isDead = tokenHash === '' || (tokenExpireTime !== '' && tokenExpireTime <= now)
  if (isDead || overlap === 0) return ''
  const until = after(now, overlap)
  return tokenExpireTime !== '' && tokenExpireTime < until ? tokenExpireTime : until
}

function after(time: string, milliseconds: number): string {
  return new Date(Date.parse(time) + milliseconds).toISOString()
}
