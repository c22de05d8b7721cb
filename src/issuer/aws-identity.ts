// Keyless access from AWS. A workload signs a request with its AWS credentials, and AWS reports who signed it.
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

/** True if the credential is a signed AWS request. Such a request is base64, which has no dots. Tokens have dots. */
export function isAwsRequest(credential: string): boolean {
  return !credential.includes('.')
}

/**
 * Proves that the signer of the request is the identity `named`. Throws UNAUTHENTICATED if the request is malformed or AWS
 * refuses it. Throws PERMISSION_DENIED if the request is for another identity, or if the identity does not match or exist. Throws
 * RESOURCE_EXHAUSTED after too many requests or too many refused credentials from the source, or with too many requests in
 * progress.
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
  // The request is sent to AWS only if the identity exists and has AWS conditions. Otherwise any caller could make this server
  // call AWS.
  const awsIdentity = (await findIdentityForExchange(app.db, named))?.awsIdentity
  if (!awsIdentity) throw notForIdentity()

  // The limit applies to each network and identity together. So callers from other networks cannot use up the limit of the
  // identity.
  const network = networkOf(source)
  // Each wrong signature costs a call to AWS. So sources with too many refused credentials are stopped before the call.
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
