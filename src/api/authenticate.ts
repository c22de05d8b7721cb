import type { App, Caller } from '#app.ts'
import { createRights, noRights } from '#domains/iam/access/rights.ts'
import { operatorUid, type Verifier } from '#issuer/access-token.ts'
import { unauthenticated } from '#lib/errors.ts'

export const anonymous: Caller = { uid: '', operator: false, rights: noRights }

/** The caller that a bearer token stands for, with what they may do now. Throws UNAUTHENTICATED without a valid one. */
export async function authenticate(app: App, verify: Verifier, authorization: string | undefined): Promise<Caller> {
  if (authorization === undefined) throw unauthenticated('a bearer token is required')
  const bearer = bearerOf(authorization)
  if (bearer === undefined) throw unauthenticated('the Authorization header must be "Bearer" and a token')

  const token = await verify(bearer)
  const { subject, narrowing } = token
  const operator = subject === operatorUid
  const grants = operator ? new Map<string, bigint>() : await app.grants.of(subject)
  return { uid: subject, operator, rights: createRights({ identity: subject, grants, operator, narrowing }), token }
}

/** The credential of an Authorization header of the Bearer scheme (RFC 6750). */
export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +([^\s]+)$/i.exec(authorization ?? '')?.[1]
}
