// Access tokens that are narrowed to requested groups and capabilities and are short enough for an HTTP header.
import { withGranted } from '#domains/iam/access/rights.ts'
import { invalid } from '#lib/errors.ts'
import { isAtOrBelow } from '#lib/uid.ts'
import { type CallerSession, signAccessToken, type TokenInput } from './access-token.ts'
import type { Keyring } from './keyring.ts'
import { narrow, narrowCompactly, ScopeOutOfReach } from './narrowing.ts'
import { tooLongNames } from './outside-token.ts'

/** Longest access token, in characters. Some servers and proxies refuse slightly longer headers. */
const maxIssuedLength = 12 * 1024
/** Most groups that an access token lists. With more groups, the token would always be too long. */
const maxListed = 200

export type NarrowedInput = Pick<TokenInput, 'issuer' | 'subject' | 'now' | 'claims' | 'granted' | 'lifetime'> & {
  audiences: readonly string[]
  scopes: readonly string[]
  /** Mask of the requested capabilities. Undefined for all. */
  kept: bigint | undefined
  session?: CallerSession | undefined
}

/**
 * Signs an access token with the grants of the identity, narrowed to the requested scopes and capabilities. For a session of one
 * organization, the token contains nothing outside of it. Throws PERMISSION_DENIED for a scope in which the identity has no
 * grants.
 */
export async function signNarrowed(
  keyring: Keyring,
  bound: ReadonlyMap<string, bigint>,
  { audiences, scopes: asked, kept, ...input }: NarrowedInput,
): Promise<string> {
  const { subject, session, granted } = input
  const organization = session?.organization ?? ''
  const held = [...withGranted(bound, granted)]
  const grants = new Map(organization === '' ? held : held.filter(([group]) => isAtOrBelow(group, organization)))
  const whole = asked.length === 0 && kept === undefined
  const unique = [...new Set(audiences)]
  const sign = (narrowing: ReadonlyMap<string, bigint> | undefined): Promise<string> =>
    signAccessToken(keyring, { ...input, audience: unique.length === 1 ? unique[0]! : unique, narrowing, whole })
  if (!asked.every((scope) => organization === '' || isAtOrBelow(scope, organization))) throw new ScopeOutOfReach()

  const listing = narrow(subject, grants, asked, kept)
  const signed = listing.size <= maxListed ? await sign(listing) : ''
  // If the token is too long, a shorter form is signed. Other users can add many bindings, and an identity must still get a token.
  if (signed !== '' && signed.length <= maxIssuedLength) return signed
  const brief = await sign(narrowCompactly(subject, grants, asked, kept))
  if (brief.length <= maxIssuedLength) return brief
  const least = await sign(narrowCompactly(subject, grants, [], kept))
  if (least.length > maxIssuedLength) throw tooLongNames()
  throw invalid({
    field: 'scopes',
    description: 'has too many groups for one token; use fewer groups, or a group above them',
  })
}
