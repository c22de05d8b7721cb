// The exchange of somebody else's token, and of an ID token of ours for the tokens of its session.
import { permissionDenied } from '#lib/errors.ts'
import { countRefusals } from '#lib/net/limits.ts'
import { checkInput, type Exchanged, type ExchangeInput, exchange, type Issuing } from '../exchange.ts'
import { sessionOfIdToken } from '../id-token.ts'
import { accessTokenOf } from './tokens.ts'

/** As `exchange`; an ID token of ours becomes an access token of the person's own session. */
export async function exchangeAny(issuing: Issuing, input: ExchangeInput): Promise<Exchanged> {
  const { credential } = input
  if (credential === undefined || !isOurs(issuing.issuer, credential)) return exchange(issuing, input)
  const { app, issuer, source } = issuing
  app.limits.check('source', source)
  checkInput(issuer, input)
  const session = await countRefusals(app.limits, source, () => sessionOfIdToken(issuing, credential))
  const subject = session.identityUid
  app.limits.check('identity', subject)
  if (input.identity !== '' && input.identity !== subject) {
    throw permissionDenied('the token may not be exchanged for this identity')
  }
  return { ...(await accessTokenOf(issuing, session, input)), subject }
}

/** Whether the token says so; it is proven later. */
function isOurs(issuer: string, credential: string): boolean {
  try {
    const claims = Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString()
    return (JSON.parse(claims) as { iss?: unknown } | null)?.iss === issuer
  } catch {
    return false
  }
}
