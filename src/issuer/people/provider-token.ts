// Exchange of an ID token that a sign-in provider has issued for this server. The request names the provider. The exchange is a
// sign-in: for an organization's provider, it starts a session that is limited to the organization.
import type { App, Work } from '#app.ts'
import { personUid } from '#domains/iam/identities/people.ts'
import { requireNotBlocked, signIn } from '#domains/iam/sign-in/sign-in.service.ts'
import { invalid, unauthenticated } from '#lib/errors.ts'
import { countRefusals } from '#lib/net/limits.ts'
import { rootOf } from '#lib/uid.ts'
import { checkInput, type Exchanged, type ExchangeInput, exchange, type Issuing, notForIdentity } from '../exchange.ts'
import { sessionOfIdToken } from '../id-token.ts'
import { checkTimes, type OutsideToken, readOutsideToken, refused, verifyOutsideToken } from '../outside-token.ts'
import { findSignInProvider, type SignInProvider } from './providers.ts'
import { provenBy } from './sign-in.ts'
import { accessTokenOf, checkRequest } from './tokens.ts'

/**
 * Exchanges a token. `id` is the uid of an organization's provider, or the name of a provider in the settings. If `id` is empty,
 * the token may be of any issuer. Throws like `exchange`, and INVALID_ARGUMENT for an unknown provider.
 */
export async function exchangeOf(
  work: Pick<Work, 'app' | 'cause' | 'log'>,
  issuing: Issuing,
  id: string,
  input: ExchangeInput,
): Promise<Exchanged> {
  if (id === '') return exchangeAny(issuing, input)
  const { app, source } = issuing
  app.limits.check('source', source)
  checkInput(issuing.issuer, input)
  const { credential, identity, ...wish } = input
  if (credential === undefined)
    throw unauthenticated('no token to exchange was sent; send it in the header "Authorization: Bearer TOKEN"')
  const provider = await findSignInProvider(app, id)
  if (!provider)
    throw invalid({ field: 'identity_provider', description: 'does not name an identity provider of this server' })

  const token = await countRefusals(app.limits, source, () => verifyFor(app, provider, credential))
  if (provider.organization === '') return exchange(issuing, input)
  const proven = provenBy(app, provider, { idToken: credential, claims: token.claims })
  if (identity !== '') {
    if (rootOf(identity) !== provider.organization) {
      throw notForIdentity()
    }
    await requireNotBlocked(app.db, issuing, provider.id, proven.externalId)
    return exchange(issuing, input)
  }
  checkRequest(issuing.issuer, wish)
  app.limits.check('identity', personUid(token.issuer, token.subject))
  const session = await signIn(work, proven, { kind: 'client', refresh: false, invite: '', register: false })
  return { ...(await accessTokenOf(issuing, session, wish)), subject: session.identityUid }
}

/** Parses and verifies an ID token. Throws UNAUTHENTICATED unless this provider has signed it for this server. */
async function verifyFor(app: App, { issuer, clientId }: SignInProvider, text: string): Promise<OutsideToken> {
  const token = readOutsideToken(text)
  checkTimes(token, app.clock())
  if (token.issuer !== issuer) throw refused('another issuer')
  const { azp } = token.claims
  if (!token.audience.includes(clientId) || (azp !== undefined && azp !== clientId)) throw refused('another audience')
  await verifyOutsideToken(token, await app.outsideIssuers.keysOf(issuer, token.kid))
  return token
}

/** Like `exchange`, but also accepts an ID token of this server. An ID token is exchanged for an access token of its session. */
async function exchangeAny(issuing: Issuing, input: ExchangeInput): Promise<Exchanged> {
  const { credential } = input
  if (credential === undefined || !isOwnToken(issuing.issuer, credential)) return exchange(issuing, input)
  const { app, issuer, source } = issuing
  app.limits.check('source', source)
  checkInput(issuer, input)
  const session = await countRefusals(app.limits, source, () => sessionOfIdToken(issuing, credential))
  const subject = session.identityUid
  app.limits.check('identity', subject)
  if (input.identity !== '' && input.identity !== subject) {
    throw notForIdentity()
  }
  return { ...(await accessTokenOf(issuing, session, input)), subject }
}

/** True if the issuer in the token is this server. The signature is not verified here. */
function isOwnToken(issuer: string, credential: string): boolean {
  try {
    const claims = Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString()
    return (JSON.parse(claims) as { iss?: unknown } | null)?.iss === issuer
  } catch {
    return false
  }
}
