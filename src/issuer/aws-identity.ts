// Keyless access from AWS: whoever holds credentials there signs a request, and AWS tells us who that is.
import type { App } from '#app.ts'
import { matchAwsCaller } from '#domains/iam/identities/claims.ts'
import {
  findIdentityForExchange,
  logStoredPatterns,
  logTooLongClaim,
} from '#domains/iam/identities/identities.service.ts'
import { permissionDenied } from '#lib/errors.ts'
import { networkOf } from '#lib/net/source-address.ts'
import { patterns } from '#lib/patterns/patterns.ts'
import { rootOf } from '#lib/uid.ts'
import { checkSigningTime, readAwsRequest } from './aws-request.ts'
import { refused } from './outside-token.ts'

export type AwsProven = { uid: string; claims: { act: Record<string, string> } }

/** A token has dots, and base64 has none. */
export function isAwsRequest(credential: string): boolean {
  return !credential.includes('.')
}

/**
 * The identity `named`, if the signer of the request is it. Throws UNAUTHENTICATED for a request that is not as it should
 * be, or that AWS does not accept; PERMISSION_DENIED for one that is somebody else's, also when there is no such identity;
 * RESOURCE_EXHAUSTED when too many for this identity came from the source, or are on their way, or when the source has sent
 * too many credentials that were refused.
 */
export async function proveAwsIdentity(
  app: Pick<App, 'db' | 'limits' | 'vendor' | 'awsCallers' | 'log' | 'tooLongClaims'>,
  audiences: readonly string[],
  credential: string,
  named: string,
  { now, source }: { now: Date; source: string },
): Promise<AwsProven> {
  const { host, region, origin } = app.awsCallers
  const products = app.vendor ? ['Pinfold', app.vendor.token] : ['Pinfold']
  const signed = readAwsRequest(credential, { host, region, products, audiences })
  if (named === '' || signed.identity !== named) throw notTheirs()
  checkSigningTime(signed, now)
  // Nobody is asked unless there is something to compare the answer with, so a stranger cannot make us call anybody.
  const awsIdentity = (await findIdentityForExchange(app.db, named))?.awsIdentity
  if (!awsIdentity) throw notTheirs()

  // Each address for itself, so that nobody uses up what the identity itself may ask for.
  const network = networkOf(source)
  // Only AWS tells a good one, so who has sent too many wrong ones waits here, and not behind the others.
  app.limits.look('refusal', source)
  app.limits.check('aws', `${network} ${named}`)
  const caller = await app.awsCallers.identify(signed.request, { network, identity: named })
  if ('refused' in caller) throw refused(caller.refused)
  const { compiled } = patterns.counts()
  const isTheirs = matchAwsCaller(awsIdentity, caller, logTooLongClaim(app, named, now))
  if (patterns.counts().compiled !== compiled) logStoredPatterns(app, named, { awsIdentity })
  if (!isTheirs) throw notTheirs()
  app.limits.check('issuer', `${rootOf(named)} ${origin}`)
  const { account, arn, userId } = caller
  const act = { iss: origin, sub: userId, aud: signed.audience, aws_account: account, aws_arn: arn }
  return { uid: named, claims: { act } }
}

function notTheirs() {
  return permissionDenied('the token may not be exchanged for this identity')
}
