import { decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose'
import { Newest } from '#lib/caches/newest.ts'
import { decodeBits } from '#lib/capability-set.ts'
import { signingAlgorithms } from '#lib/crypto/signing-algorithms.ts'
import { AppError, unauthenticated } from '#lib/errors.ts'
import { subdomainOf } from '#lib/net/subdomain.ts'
import { isUid, operatorUid, top } from '#lib/uid.ts'
import type { Keyring } from './keyring.ts'
import { type CallerSession, type RepositoryAccess, registryTokenType } from './sign-token.ts'

export {
  type CallerSession,
  maxLifetime,
  type RepositoryAccess,
  registryTokenType,
  signAccessToken,
  type TokenInput,
} from './sign-token.ts'
export { operatorUid }

/** Content of a verified access token. */
export type AccessToken = {
  subject: string
  audience: readonly string[]
  /** Times in seconds since 1970. */
  issuedAt: number
  expiry: number
  /** Capability masks by group. Undefined if the token has all permissions of its subject. */
  narrowing: ReadonlyMap<string, bigint> | undefined
  /** True if the token was requested with fewer permissions than its subject has. */
  narrowed: boolean
  /** Issuer, subject and audience of the outside token, if the token was issued by the token exchange. */
  act?: Readonly<Record<string, string>>
  /** Session of the person, if the token is that of a person. */
  session?: CallerSession
  /** Profile of the person from the sign-in provider. */
  upstream?: Readonly<Record<string, string>>
  /** Email address of the person, if the provider has verified it. */
  verifiedEmail?: string
  /** Capability masks by group that external groups add to the session. */
  granted?: ReadonlyMap<string, bigint>
  /** True if the capabilities of external groups did not fit into the token. Then those of the stored session apply. */
  grantedBySession?: boolean
  /** Repositories and actions, if the token is from the registry's token endpoint. */
  access?: readonly RepositoryAccess[]
  /** Uid of the push token with which the token was requested at the token endpoint. */
  pushToken?: string
  /** Name of the scanner for which the token was signed. */
  scanner?: string
}

/** Error for a valid token with another audience. The registry responds with 403 instead of 401. */
export class WrongAudience extends AppError {
  constructor(cause: unknown) {
    super('UNAUTHENTICATED', 'the token is for another audience; get a token for this one', { cause })
  }
}

/** Reads the session claims of a token. Throws UNAUTHENTICATED if a claim has another type than this server writes. */
function readSession({
  sid = '',
  org = '',
  auth_time,
  grp,
}: JWTPayload): Pick<AccessToken, 'session' | 'granted' | 'grantedBySession'> {
  if (auth_time === undefined) return {}
  if (typeof sid !== 'string' || typeof org !== 'string' || typeof auth_time !== 'number') {
    throw unauthenticated('the token was not issued by this server; sign in again')
  }
  const session = { uid: sid, organization: org, authTime: auth_time }
  if (grp === true) return { session, grantedBySession: true }
  return grp === undefined ? { session } : { session, granted: readNarrowing(grp) }
}

export type Verifier = (token: string) => Promise<AccessToken>

const maxTokenLength = 16 * 1024
const maxCached = 10_000

type Expected = { issuer: string; audience: string; registry: boolean }

/**
 * Creates a verifier of access tokens of this server for one audience. Verified tokens are cached until they expire. The verifier
 * of the registry also accepts tokens of the registry's token endpoint. Such a token has an empty subject if it is anonymous.
 */
export function createVerifier(
  keyring: Keyring,
  issuer: string,
  audience: string,
  now: () => Date,
  registry: boolean = false,
): Verifier {
  const expected: Expected = { issuer, audience, registry }
  const known = new Newest<string, AccessToken>(maxCached)
  let epoch = keyring.epoch()

  return async (token) => {
    if (epoch !== keyring.epoch()) {
      known.clear()
      epoch = keyring.epoch()
    }
    const cached = known.get(token)
    if (cached) {
      if (cached.expiry * 1000 > now().getTime()) return cached
      known.delete(token)
      throw unauthenticated('the token has expired; sign in again or refresh it')
    }
    const verified = await verify(keyring, expected, token, now())
    known.set(token, verified)
    return verified
  }
}

async function verify(keyring: Keyring, expected: Expected, token: string, now: Date): Promise<AccessToken> {
  if (token.length > maxTokenLength) throw unauthenticated('the token is too long')
  try {
    const { payload, protectedHeader } = await jwtVerify(
      token,
      async (header) => {
        const key = header.kid === undefined ? undefined : await keyring.findVerifier(header.kid, header.alg)
        if (!key) throw new errors.JWKSNoMatchingKey()
        return key
      },
      {
        issuer: expected.issuer,
        audience: acceptedBy(expected, token),
        algorithms: [...signingAlgorithms],
        currentDate: now,
        requiredClaims: ['sub', 'iat', 'exp'],
      },
    )
    const type = protectedHeader.typ?.toLowerCase().replace(/^application\//, '')
    const ofRegistry = expected.registry && type === registryTokenType
    if (!ofRegistry && type !== 'at+jwt') throw unauthenticated('the token is not an access token of this server')
    const { sub: subject } = payload
    if (typeof subject !== 'string' || !(isUid(subject) || (ofRegistry && subject === ''))) {
      throw unauthenticated('the subject of the token is not a uid')
    }
    return {
      subject,
      audience: [payload.aud ?? []].flat(),
      issuedAt: payload.iat!,
      expiry: payload.exp!,
      narrowing: payload.cap === undefined ? undefined : readNarrowing(payload.cap),
      narrowed: payload.narrowed === true,
      ...(payload.act instanceof Object && { act: readAct(payload.act) }),
      ...readSession(payload),
      ...(payload.upstream instanceof Object && { upstream: payload.upstream as Record<string, string> }),
      ...(payload.email_verified === true && typeof payload.email === 'string' && { verifiedEmail: payload.email }),
      ...(ofRegistry && { access: readAccess(payload.access) }),
      ...(ofRegistry && typeof payload.push_token === 'string' && { pushToken: payload.push_token }),
      ...(ofRegistry && typeof payload.scanner === 'string' && { scanner: payload.scanner }),
    }
  } catch (error) {
    throw explain(error)
  }
}

/** Accepted audiences. For the registry, subdomains of its host are accepted too. */
function acceptedBy({ audience, registry }: Expected, token: string): string[] {
  const named = registry ? [decodeJwt(token).aud ?? []].flat() : []
  return [audience, ...named.filter((one) => subdomainOf(one, audience))]
}

/** Reads the `cap` claim, which has encoded capability sets by group. Invalid entries are ignored and grant nothing. */
function readNarrowing(claim: unknown): ReadonlyMap<string, bigint> {
  const narrowing = new Map<string, bigint>()
  if (claim === null || typeof claim !== 'object') return narrowing
  for (const [group, text] of Object.entries(claim)) {
    const mask = typeof text === 'string' ? decodeBits(text) : undefined
    if (mask !== undefined && (group === top || isUid(group))) narrowing.set(group, mask)
  }
  return narrowing
}

/** Reads the `act` claim. Earlier versions wrote the audience as a list; its first value is used. */
function readAct(claim: object): Record<string, string> {
  const entries = Object.entries(claim).map(([name, value]: [string, unknown]) => [name, [value].flat()[0]] as const)
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

/** Reads the `access` claim of a registry token. Invalid entries are ignored and grant nothing. */
function readAccess(claim: unknown): RepositoryAccess[] {
  if (!Array.isArray(claim)) return []
  return claim.flatMap(({ type, name, actions }: Record<string, unknown>) => {
    if (typeof name !== 'string' || !Array.isArray(actions)) return []
    if (type === 'registry') return [{ type, name, actions }]
    return type === 'repository' ? [{ name, actions }] : []
  })
}

function explain(error: unknown): Error {
  if (error instanceof errors.JWTExpired)
    return unauthenticated('the token has expired; sign in again or refresh it', error)
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud') return new WrongAudience(error)
    return unauthenticated(`the token has an invalid claim: ${error.claim}`, error)
  }
  if (error instanceof errors.JOSEError || error instanceof TypeError) {
    return unauthenticated('the token was not issued by this server; sign in again', error)
  }
  return error instanceof Error ? error : new Error(String(error))
}
