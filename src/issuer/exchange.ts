// Token exchange for keyless access. An outside platform has signed a token, and the exchange issues a short-lived access token
// for it.
import type { App } from '#app.ts'
import { capabilitiesNamed } from '#domains/iam/access/capabilities.ts'
import { matchClaims, namesAudience, trustsIssuer } from '#domains/iam/identities/claims.ts'
import {
  findIdentityForExchange,
  logStoredPatterns,
  logTooLongClaim,
} from '#domains/iam/identities/identities.service.ts'
import { canonicalIssuer, personUid } from '#domains/iam/identities/people.ts'
import { isKnownToSettings } from '#domains/iam/sign-in/sign-in.service.ts'
import { readKeySetText } from '#lib/crypto/key-set.ts'
import { AppError, type Detail, invalid, permissionDenied, unauthenticated } from '#lib/errors.ts'
import { countRefusals } from '#lib/net/limits.ts'
import { subdomainOf } from '#lib/net/subdomain.ts'
import { patterns } from '#lib/patterns/patterns.ts'
import { isUid, parentOf, rootOf, top } from '#lib/uid.ts'
import { type CallerSession, maxLifetime } from './access-token.ts'
import { isAwsRequest, proveAwsIdentity } from './aws-identity.ts'
import { signNarrowed } from './narrowed-token.ts'
import { checkTimes, type OutsideToken, readOutsideToken, refused, verifyOutsideToken } from './outside-token.ts'
import { personClaims, profileOf } from './people/profile.ts'
import { peopleAudiences } from './register.ts'

export type ExchangeInput = {
  /** Outside token, as sent in the Authorization header. */
  credential: string | undefined
  /** Audiences of the new token. At least one. */
  audiences: readonly string[]
  /** Groups to which the new token is narrowed. Empty for all groups on which the identity has grants. */
  scopes: readonly string[]
  /** Dotted names of the capabilities to which the new token is narrowed. Empty for all capabilities of the identity. */
  capabilities: readonly string[]
  /** Uid of the identity of the new token. Empty for the person with the issuer and subject of the outside token. */
  identity: string
}

type ExchangeParameters = Omit<ExchangeInput, 'credential'>

/** Issued token. `expiry` is a time in ISO 8601. */
export type Exchanged = { token: string; expiry: string; subject: string }

/** Context of an exchange. `issuer` is the URL of this server, and `source` the address of the client. */
export type Issuing = { app: App; issuer: string; source: string }

/**
 * Exchanges an outside token. Throws UNAUTHENTICATED for an invalid token. Throws PERMISSION_DENIED if the token does not match
 * the identity, or if the identity does not exist. Throws INVALID_ARGUMENT for invalid parameters.
 */
export async function exchange({ app, issuer, source }: Issuing, input: ExchangeInput): Promise<Exchanged> {
  app.limits.check('source', source)
  checkInput(issuer, input)
  const kept = capabilitiesNamed(input.capabilities)
  if (input.credential === undefined)
    throw unauthenticated('no token to exchange was sent; send it in the header "Authorization: Bearer TOKEN"')
  const now = app.clock()
  const { uid, claims, session } = await proveIdentity({ app, issuer, source }, input.credential, input.identity, now)

  const grants = (await app.grants.of(uid)) ?? new Map<string, bigint>()
  const signed = await signNarrowed(app.keyring, grants, {
    issuer,
    subject: uid,
    audiences: input.audiences,
    scopes: input.scopes,
    kept,
    now,
    claims,
    ...(session && { session }),
  })
  app.lastSeen.note(uid, now.toISOString())
  const expiry = new Date((Math.floor(now.getTime() / 1000) + maxLifetime) * 1000).toISOString()
  return { token: signed, expiry, subject: uid }
}

/**
 * Claims of the new token. `act` has issuer, subject and audience of the outside token. Each value is a single text, as clients
 * expect. For a person, the profile and the sign-in time are added.
 */
function claimsOf(issuer: string, uid: string, token: OutsideToken, now: Date): Omit<Proven, 'uid'> {
  const act = { iss: token.issuer, sub: token.subject, aud: shownAudience(issuer, token) }
  if (parentOf(uid) !== top) return { claims: { act } }
  const session = { uid: '', organization: '', authTime: authTimeOf(token.claims, now) }
  return { claims: personClaims(act, profileOf(token)), session }
}

/**
 * Time of a person's sign-in at the provider, from the claim `auth_time`. A time in the future is set to now. 0 if the provider
 * does not send the claim.
 */
export function authTimeOf({ auth_time }: Readonly<Record<string, unknown>>, now: Date): number {
  const isTime = typeof auth_time === 'number' && Number.isFinite(auth_time) && auth_time > 0
  return isTime ? Math.floor(Math.min(auth_time, now.getTime() / 1000)) : 0
}

/**
 * Verifies an outside token or a signed AWS request. Returns the identity `named`, or for an empty name the person with the
 * token's issuer and subject. Throws like `exchange`.
 */
export async function proveIdentity(
  { app, issuer, source }: Issuing,
  credential: string,
  named: string,
  now: Date,
): Promise<Proven> {
  const proven = await countRefusals(app.limits, source, () =>
    proveCredential({ app, issuer, source }, credential, named, now),
  )
  // The limit of the identity is checked after the token was verified. Otherwise callers without a valid token could use up the
  // limit.
  app.limits.check('identity', proven.uid)
  return proven
}

/** Proven identity. `claims` describe the outside token, and for a person also the profile. */
type Proven = { uid: string; claims: Record<string, unknown>; session?: CallerSession }

async function proveCredential(
  { app, issuer, source }: Pick<Issuing, 'app' | 'issuer' | 'source'>,
  credential: string,
  named: string,
  now: Date,
): Promise<Proven> {
  if (isAwsRequest(credential)) {
    return proveAwsIdentity(app, defaultAudiences(issuer), credential, named, { now, source })
  }
  const token = readOutsideToken(credential)
  checkTimes(token, now)
  if (token.issuer === issuer) throw refused('a token of this server')

  const uid = named || personUid(token.issuer, token.subject)
  const identity = await findIdentityForExchange(app.db, uid)
  const proven = await prove(app, issuer, identity, token, now)
  // A person who has no account gets an error that says so. For a named identity, the error is the same whether or not the
  // identity exists.
  if (!identity && named === '') throw accountNotFound(uid)
  if (!proven) throw notForIdentity()
  // If only an organization's provider vouches for a person, the person can sign in only with that provider.
  if (parentOf(uid) === top && !(await isKnownToSettings(app.db, uid))) {
    throw named === '' ? accountNotFound(uid) : notForIdentity()
  }
  return { uid, ...claimsOf(issuer, uid, token, now) }
}

/** Most audiences, scopes or capabilities of one exchange. */
const maxNamed = 100

export function checkInput(issuer: string, { audiences, scopes, capabilities, identity }: ExchangeParameters): void {
  for (const [field, list] of Object.entries({ aud: audiences, scopes, cap: capabilities })) {
    if (list.length > maxNamed) throw invalid({ field, description: `must have at most ${maxNamed} values` })
  }
  if (audiences.length === 0)
    throw invalid({
      field: 'aud',
      description: 'an audience must be specified, such as the URL or the host name of this server',
    })
  const known = knownAudiences(issuer)
  if (!audiences.every((audience) => known.includes(audience) || subdomainOf(audience, new URL(issuer).host))) {
    throw invalid({ field: 'aud', description: `must be ${known.join(' or ')}` })
  }
  if (identity !== '' && !isUid(identity)) throw invalid({ field: 'identity', description: 'is not a uid' })
  if (!scopes.every(isUid)) throw invalid({ field: 'scopes', description: 'has a value that is not a uid' })
}

/** Audiences that a new token can have: the URL of the API, and the host of the registry. */
function knownAudiences(issuer: string): string[] {
  return [issuer, new URL(issuer).host]
}

/** Audiences that an outside token can have if the identity does not name any. */
export function defaultAudiences(issuer: string): string[] {
  const { host, hostname } = new URL(issuer)
  return [...new Set([issuer, host, hostname])]
}

/** One audience of the outside token, since clients expect a single text. Prefers an audience that means this server. */
function shownAudience(issuer: string, { audience }: OutsideToken): string {
  const ours = defaultAudiences(issuer)
  return audience.find((one) => ours.includes(one)) ?? audience[0]!
}

type Found = NonNullable<Awaited<ReturnType<typeof findIdentityForExchange>>>

/**
 * True if the outside token matches the identity. Throws UNAUTHENTICATED if the signature is wrong, or if the audience is not
 * accepted. Callers cannot distinguish a missing identity from an identity that does not match. As an exception, an audience that
 * only the identity names is accepted.
 */
async function prove(
  app: App,
  issuer: string,
  identity: Found | undefined,
  token: OutsideToken,
  now: Date,
): Promise<boolean> {
  const { claimMatch, staticKeys } = identity ?? {}
  const ours = acceptedAudiences(app, issuer, identity, token)
  if (staticKeys && canonicalIssuer(staticKeys.issuer ?? '') === token.issuer && staticKeys.subject === token.subject) {
    await verifyOutsideToken(token, readKeySetText(staticKeys.issuerKeys ?? ''))
    // The limit applies to each identity, since the creator of an identity with static keys can choose any issuer name.
    app.limits.check('issuer', `static ${identity?.uid}`)
    checkAudience(token, staticKeys.audiences?.length ? staticKeys.audiences : ours)
    return Date.parse(staticKeys.expirationTime ?? '') > now.getTime()
  }
  const { compiled } = patterns.counts()
  const onTooLong = identity && logTooLongClaim(app, identity.uid, now)
  // Keys are fetched only if the identity trusts the issuer. Otherwise any caller could make this server send requests.
  if (!identity || !claimMatch || !trustsIssuer(claimMatch, token.issuer, onTooLong)) {
    const held = app.outsideIssuers.held(token.issuer)
    if (held) await verifyOutsideToken(token, held)
    if (!isForIdentity(identity, token)) checkAudience(token, ours)
    return false
  }
  await verifyOutsideToken(token, await app.outsideIssuers.keysOf(token.issuer, token.kid))
  // Patterns are matched after the signature was verified, so that forged tokens cannot cause this work.
  const failed = matchClaims(claimMatch, token.claims, ours, onTooLong).filter(({ matches }) => !matches)
  // The log entry is written only when patterns are compiled, since tokens for an identity may be exchanged often.
  if (patterns.counts().compiled !== compiled) logStoredPatterns(app, identity.uid, identity)
  if (failed.length === 0) {
    // The limit applies to each organization and issuer, and only to matching tokens. Otherwise anyone with a token of a public
    // issuer could use it up.
    app.limits.check('issuer', `${rootOf(identity.uid)} ${token.issuer}`)
    return true
  }
  if (failed.every(({ claim }) => claim === 'aud')) throw refused('another audience')
  if (!isForIdentity(identity, token)) checkAudience(token, ours)
  return false
}

/** Accepted audiences if the identity names none. For a person, these are the audiences of the issuer in the settings. */
function acceptedAudiences(app: App, issuer: string, identity: Found | undefined, token: OutsideToken): string[] {
  const isPerson = identity && parentOf(identity.uid) === top
  const listed = peopleAudiences(app.config.oidcProviders, token.issuer)
  return isPerson ? listed : [...defaultAudiences(issuer), ...(identity ? [] : listed)]
}

/** True if the identity names an audience of its own and the token has it. */
function isForIdentity(identity: Found | undefined, { audience }: OutsideToken): boolean {
  const { claimMatch, staticKeys } = identity ?? {}
  if (claimMatch) return namesAudience(claimMatch, audience)
  return staticKeys?.audiences?.some((one) => audience.includes(one)) ?? false
}

function checkAudience(token: OutsideToken, accepted: readonly string[]): void {
  if (!token.audience.some((audience) => accepted.includes(audience))) throw refused('another audience')
}

/** Error for a token that does not match the identity. The message is the same whether or not the identity exists. */
export function notForIdentity(): AppError {
  return permissionDenied('the token does not match the identity; check its uid and the claims that it requires')
}

function accountNotFound(uid: string): AppError {
  const details: Detail[] = [{ type: 'ResourceInfo', resourceType: 'iam.pinfold.dev/Identity', resourceName: uid }]
  return new AppError('NOT_FOUND', 'there is no account for this user; register first, or ask for an invitation', {
    details,
  })
}
