// The life of an identity provider's SCIM token, and whether its endpoint is open (behaviour of the contract: one token,
// for a while two; each change makes a new etag).
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
  aScimState,
  aScimToken,
  type IssuedToken,
  type ScimSettings,
  type ScimState,
  tokenHashOf,
  tokenText,
  tokenTimes,
} from './scim-settings.model.ts'

/** How long a token is to live: until a time, for ever, or by default for a year. */
export type Life = { expireTime: string | undefined; neverExpires: boolean }

/** The token is told this once. FAILED_PRECONDITION when there was one before. */
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
        description: 'a SCIM token was issued before; regenerate it instead',
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
    await tell(tx, call, 'iam.identity_providers.scim_token.generated', provider, aScimToken(issued))
    return issued
  })
  call.log.info('scim token generated', { provider })
  return { ...issued, token }
}

/** The token before works for `overlap` milliseconds more, if it works now and not beyond its own end. */
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
    const lingers = lingering(before, Math.min(overlap, tokenTimes.longestOverlap), call.now)
    const { etag: next } = await save(tx, provider, {
      enabled: before.enabled,
      tokenHash: tokenHashOf(token),
      tokenExpireTime: expireTime,
      previousHash: lingers === '' ? '' : before.tokenHash,
      previousExpireTime: lingers,
    })
    const issued = { provider, etag: next, expireTime, previousExpireTime: lingers, overlap }
    await tell(tx, call, 'iam.identity_providers.scim_token.regenerated', provider, aScimToken(issued))
    return issued
  })
  call.log.info('scim token regenerated', { provider })
  return { ...issued, token }
}

/** All tokens stop working. Needs no etag, so that nothing stands in the way; the endpoint stays as open as it is. */
export async function revokeScimToken(call: Call, provider: string): Promise<ScimState> {
  const state = await call.app.db.tx(async (tx) => {
    const before = await requireSettings(tx, provider)
    const none = { tokenHash: '', tokenExpireTime: '', previousHash: '', previousExpireTime: '' }
    const { enabled, etag } = await save(tx, provider, { enabled: before.enabled, ...none })
    const state = { provider, etag, enabled, time: call.now }
    await tell(tx, call, 'iam.identity_providers.scim_token.revoked', provider, aScimState(state))
    return state
  })
  call.log.info('scim token revoked', { provider })
  return state
}

/** Two people must be able to undo what a provider does to one of them: FAILED_PRECONDITION with fewer owners. */
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
        description: `${neededOwners} identities must be bound directly as owners of the organisation`,
      })
    }
    const after = await save(tx, provider, { ...before, enabled })
    const state = { provider, etag: after.etag, enabled, time: call.now }
    await tell(tx, call, 'iam.identity_providers.scim_enabled.updated', provider, aScimState(state))
    return state
  })
  call.log.info('scim endpoint switched', { provider, enabled })
  return state
}

const neededOwners = 2

function requireEtag(etag: string): void {
  if (etag === '') throw invalid({ field: 'etag', description: 'etag is required' })
}

/** NOT_FOUND before the first token; ABORTED when the settings are no longer those of the etag. */
async function requireSettings(reader: Reader, provider: string, etag?: string): Promise<ScimSettings> {
  const { scim } = await requireProvider(reader, provider)
  if (!scim) throw notFound(identityProviderType, `${provider} with a SCIM token`)
  if (etag !== undefined && etag !== scim.etag) {
    throw new AppError('ABORTED', 'the SCIM settings have changed since; read them again', { reason: 'ETAG_MISMATCH' })
  }
  return scim
}

async function save(tx: Tx, provider: string, settings: Omit<ScimSettings, 'etag'>): Promise<ScimSettings> {
  const saved = { ...settings, etag: randomBytes(8).toString('hex') }
  await saveSettings(tx, provider, saved)
  return saved
}

async function tell(
  tx: Tx,
  call: Call,
  name: Parameters<typeof emit>[2],
  provider: string,
  resource: Resource,
): Promise<void> {
  await emit(tx, call, name, { subject: provider, group: parentOf(provider), resource })
}

/** When a token ends that is made now; empty for never. */
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

/** Until when a token works that is being replaced; empty when it stops, or has stopped before. */
function lingering({ tokenHash, tokenExpireTime }: ScimSettings, overlap: number, now: string): string {
  const isDead = tokenHash === '' || (tokenExpireTime !== '' && tokenExpireTime <= now)
  if (isDead || overlap === 0) return ''
  const until = after(now, overlap)
  return tokenExpireTime !== '' && tokenExpireTime < until ? tokenExpireTime : until
}

function after(time: string, milliseconds: number): string {
  return new Date(Date.parse(time) + milliseconds).toISOString()
}
