// Keyless access: a token that somebody's platform signed becomes a short-lived token of ours.
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
  /** The outside token, as the bearer credential carried it. */
  credential: string | undefined
  /** Who is to accept the new token; at least one. */
  audiences: readonly string[]
  /** Only these places; all that the identity can reach when empty. */
  scopes: readonly string[]
  /** Only these capabilities, dotted; all that the identity holds when empty. */
  capabilities: readonly string[]
  /** The identity to become; the person with the token's issuer and subject when empty. */
  identity: string
}

type Asked = Omit<ExchangeInput, 'credential'>

/** `expiry` is ISO 8601. */
export type Exchanged = { token: string; expiry: string; subject: string }

/** Where the exchange happens: what clients call us, and whom we know. */
export type Issuing = { app: App; issuer: string; source: string }

/**
 * Throws UNAUTHENTICATED for a credential that is not good, PERMISSION_DENIED for one that is not that identity's (also
 * when there is no such identity), INVALID_ARGUMENT for what is asked in a wrong way.
 */
export async function exchange({ app, issuer, source }: Issuing, input: ExchangeInput): Promise<Exchanged> {
  app.limits.check('source', source)
  checkInput(issuer, input)
  const kept = capabilitiesNamed(input.capabilities)
  if (input.credential === undefined) throw unauthenticated('a bearer token to exchange is required')
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

/** Who has shown what. Every value of `act` is a text, as clients read it; of a person there is more. */
function claimsOf(issuer: string, uid: string, token: OutsideToken, now: Date): Omit<Proven, 'uid'> {
  const act = { iss: token.issuer, sub: token.subject, aud: shownAudience(issuer, token) }
  if (parentOf(uid) !== top) return { claims: { act } }
  const session = { uid: '', organization: '', authTime: authTimeOf(token.claims, now) }
  return { claims: personClaims(act, profileOf(token)), session }
}

/** When a person showed their provider who they are, by its own word and not after now; 0 when it does not say. */
export function authTimeOf({ auth_time }: Readonly<Record<string, unknown>>, now: Date): number {
  const isTime = typeof auth_time === 'number' && Number.isFinite(auth_time) && auth_time > 0
  return isTime ? Math.floor(Math.min(auth_time, now.getTime() / 1000)) : 0
}

/**
 * Whose the outside token, or the signed request to AWS, is: the identity named, or with an empty name the person with the
 * token's issuer and subject.
 * Throws as `exchange` does.
 */
export async function proveIdentity(
  { app, issuer, source }: Issuing,
  credential: string,
  named: string,
  now: Date,
): Promise<Proven> {
  const proven = await countRefusals(app.limits, source, () => lookAt({ app, issuer, source }, credential, named, now))
  // Only what is proven counts, so that nobody uses up what somebody else may ask for.
  app.limits.check('identity', proven.uid)
  return proven
}

/** `claims` say by which token, and of a person who it is. */
type Proven = { uid: string; claims: Record<string, unknown>; session?: CallerSession }

async function lookAt(
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
  if (token.issuer === issuer) throw refused('our own token')

  const uid = named || personUid(token.issuer, token.subject)
  const identity = await findIdentityForExchange(app.db, uid)
  const proven = await prove(app, issuer, identity, token, now)
  // A person who has no account yet is told so; nothing is said about identities that a caller names.
  if (!identity && named === '') throw accountNotFound(uid)
  if (!proven) throw permissionDenied('the token may not be exchanged for this identity')
  // Nor has a person one here for whom an organisation's provider alone has vouched so far.
  if (parentOf(uid) === top && !(await isKnownToSettings(app.db, uid))) {
    throw named === '' ? accountNotFound(uid) : permissionDenied('the token may not be exchanged for this identity')
  }
  return { uid, ...claimsOf(issuer, uid, token, now) }
}

/** The longest list of audiences, scopes or capabilities that one exchange may name. */
const maxNamed = 100

export function checkInput(issuer: string, { audiences, scopes, capabilities, identity }: Asked): void {
  for (const [field, list] of Object.entries({ aud: audiences, scopes, cap: capabilities })) {
    if (list.length > maxNamed) throw invalid({ field, description: `must hold at most ${maxNamed} values` })
  }
  if (audiences.length === 0) throw invalid({ field: 'aud', description: 'an audience must be specified' })
  const known = knownAudiences(issuer)
  if (!audiences.every((audience) => known.includes(audience) || subdomainOf(audience, new URL(issuer).host))) {
    throw invalid({ field: 'aud', description: `must be one of ${known.join(', ')}` })
  }
  if (identity !== '' && !isUid(identity)) throw invalid({ field: 'identity', description: 'is not a uid' })
  if (!scopes.every(isUid)) throw invalid({ field: 'scopes', description: 'holds a text that is not a uid' })
}

/** The API, which is called by its URL, and the registry, which is called by its host. */
function knownAudiences(issuer: string): string[] {
  return [issuer, new URL(issuer).host]
}

/** What an outside token may be meant for when the identity says nothing about it. */
export function defaultAudiences(issuer: string): string[] {
  const { host, hostname } = new URL(issuer)
  return [...new Set([issuer, host, hostname])]
}

/** Clients read one text here: that of several audiences which names us, else the first. */
function shownAudience(issuer: string, { audience }: OutsideToken): string {
  const ours = defaultAudiences(issuer)
  return audience.find((one) => ours.includes(one)) ?? audience[0]!
}

type Found = NonNullable<Awaited<ReturnType<typeof findIdentityForExchange>>>

/**
 * Whether the token shows that its bearer is the identity. A missing identity is told from one that wants other claims in
 * no way, unless the token is meant for an audience that the identity names. Throws UNAUTHENTICATED for a token that is
 * forged, as far as we can tell, or was issued for another audience.
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
    // Whoever makes the identity says what its issuer is called, so it has a limit of its own.
    app.limits.check('issuer', `static ${identity?.uid}`)
    checkAudience(token, staticKeys.audiences?.length ? staticKeys.audiences : ours)
    return Date.parse(staticKeys.expirationTime ?? '') > now.getTime()
  }
  const { compiled } = patterns.counts()
  const onTooLong = identity && logTooLongClaim(app, identity.uid, now)
  // Nobody is asked for keys unless the identity trusts that very issuer, so a stranger cannot make us call anybody.
  if (!identity || !claimMatch || !trustsIssuer(claimMatch, token.issuer, onTooLong)) {
    const held = app.outsideIssuers.held(token.issuer)
    if (held) await verifyOutsideToken(token, held)
    if (!isForIdentity(identity, token)) checkAudience(token, ours)
    return false
  }
  await verifyOutsideToken(token, await app.outsideIssuers.keysOf(token.issuer, token.kid))
  // Only now, so that forged tokens have no patterns matched.
  const failed = matchClaims(claimMatch, token.claims, ours, onTooLong).filter(({ matches }) => !matches)
  // Once for each time that they are compiled, since an identity may be exchanged often.
  if (patterns.counts().compiled !== compiled) logStoredPatterns(app, identity.uid, identity)
  if (failed.length === 0) {
    // By organisation and only for what matches, since an issuer may be everybody's, and anybody has a token of some.
    app.limits.check('issuer', `${rootOf(identity.uid)} ${token.issuer}`)
    return true
  }
  if (failed.every(({ claim }) => claim === 'aud')) throw refused('the audience')
  if (!isForIdentity(identity, token)) checkAudience(token, ours)
  return false
}

/** What the token may be meant for when the identity does not say: us, or for a person what the settings say of the issuer. */
function acceptedAudiences(app: App, issuer: string, identity: Found | undefined, token: OutsideToken): string[] {
  const isPerson = identity && parentOf(identity.uid) === top
  const listed = peopleAudiences(app.config.peopleIssuers, token.issuer)
  return isPerson ? listed : [...defaultAudiences(issuer), ...(identity ? [] : listed)]
}

/** Whether the token is meant for an audience that the identity names instead of us. */
function isForIdentity(identity: Found | undefined, { audience }: OutsideToken): boolean {
  const { claimMatch, staticKeys } = identity ?? {}
  if (claimMatch) return namesAudience(claimMatch, audience)
  return staticKeys?.audiences?.some((one) => audience.includes(one)) ?? false
}

function checkAudience(token: OutsideToken, accepted: readonly string[]): void {
  if (!token.audience.some((audience) => accepted.includes(audience))) throw refused('the audience')
}

function accountNotFound(uid: string): AppError {
  const details: Detail[] = [{ type: 'ResourceInfo', resourceType: 'iam.pinfold.dev/Identity', resourceName: uid }]
  return new AppError('NOT_FOUND', 'the account of this person was not found', { details })
}
