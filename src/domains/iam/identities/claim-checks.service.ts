import type { Call } from '#app.ts'
import { found, invalid, refuseIfAny } from '#lib/errors.ts'
import { parseClaims } from '#lib/json/claims.ts'
import { parentOf, top } from '#lib/uid.ts'
import { requireGroup } from '../groups/groups.service.ts'
import type { ClaimCheck } from './claims.ts'
import { type ClaimMatch, identityType } from './identities.model.ts'
import * as store from './identities.store.ts'
import { checkClaimMatch, maxRelationshipBytes } from './relationships.ts'
import { checkToken } from './token-checks.ts'

const maxBytes = 16 * 1024

type ClaimsToCheck = { uid: string; claims: string; match: ClaimMatch | undefined }

/** Compares the claims of a token with the conditions of an identity. `match` has conditions without a stored identity. */
export async function checkClaims(call: Call, { uid, claims, match }: ClaimsToCheck): Promise<ClaimCheck[]> {
  const token = readClaims(claims)
  if (match && Buffer.byteLength(JSON.stringify(match)) > maxRelationshipBytes) {
    throw invalid({ field: 'match', description: `must be at most ${maxRelationshipBytes} bytes of JSON` })
  }
  if (match) refuseIfAny(checkClaimMatch(match, 'match'))
  const { db, clock } = call.app
  if (match) await requireGroup(db, uid)
  const identity = match ? { claimMatch: match } : found(await store.findIdentity(db, uid), identityType, uid)
  // People have no conditions that could be checked. The settings select the tokens with which they sign in.
  if (!match && parentOf(uid) === top) throw notCheckable()
  const { host, hostname } = new URL(call.url)
  const checks = checkToken(identity, token, [...new Set([call.url, host, hostname])], clock())
  if (!checks) throw notCheckable()
  return checks
}

function notCheckable() {
  return invalid({
    field: 'uid',
    description: 'is an identity that does not sign in with a token; its claims cannot be checked',
  })
}

function readClaims(text: string): Record<string, unknown> {
  const bad = (description: string) => invalid({ field: 'claims', description })
  if (text === '') throw bad('is required')
  if (Buffer.byteLength(text) > maxBytes) throw bad(`must be at most ${maxBytes} bytes`)
  let value: unknown
  try {
    value = parseClaims(text)
  } catch {
    throw bad('is not valid JSON, or has the same member twice')
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw bad('must be a JSON object')
  return value as Record<string, unknown>
}
