// Keyless access from AWS: a workload signs a request with its AWS credentials, and AWS tells us the identity of the signer.
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

/** True for a signed request. A token contains dots, and base64 contains none. */
export function isAwsRequest(credential: string): boolean {
  return !credential.includes('.')
}

/**
 * Identity `named`, if it has signed the request. Throws UNAUTHENTICATED for a malformed request, or one that AWS refuses. Throws
 * PERMISSION_DENIED for the request of another identity, and if the identity does not exist. Throws RESOURCE_EXHAUSTED if the
 * source has sent too many requests for this identity, or too many refused credentials, or if too many are in flight.
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
  if (named === '' || signed.identity !== named) throw notForIdentity()
  checkSigningTime(signed, now)
  // AWS is called only if there is a condition to compare with, so that a stranger cannot make the server call AWS.
  const awsIdentity = (await findIdentityForExchange(app.db, named))?.awsIdentity
  if (!awsIdentity) throw notForIdentity()

  // Limits each address separately, so that nobody uses up the limit of the identity itself.
  const network = networkOf(source)
  // Only AWS can verify a request, so a source with too many refused ones is stopped here, before it delays others.
  app.limits.look('refusal', source)
  app.limits.check('aws', `${network} ${named}`)
  const caller = await app.awsCallers.identify(signed.request, { network, identity: named })
  if ('refused' in caller) throw refused(caller.refused)
  const { compiled } = patterns.counts()
  const isTheirs = matchAwsCaller(awsIdentity, caller, logTooLongClaim(app, named, now))
  if (patterns.counts().compiled !== compiled) logStoredPatterns(app, named, { awsIdentity })
  if (!isTheirs) throw notForIdentity()
  app.limits.check('issuer', `${rootOf(named)} ${origin}`)
  const { account, arn, userId } = caller
  const act = { iss: origin, sub: userId, aud: signed.audience, aws_account: account, aws_arn: arn }
  return { uid: named, claims: { act } }
}

function notForIdentity() {
  return permissionDenied(
    'the signed request does not match the identity; check its uid and the AWS account, ARN or user ID that it requires',
  )
}
