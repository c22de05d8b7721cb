// Methods of version 1 that name no group. They create identities with static keys in the only group in which the caller is
// allowed to create identities.
import type { Call, Handlers } from '#app.ts'
import type { Identities, Identity as IdentityMessage } from '#gen/pinfold/events/v1/identities_pb.ts'
import { failedPrecondition, permissionDenied, withFieldNames } from '#lib/errors.ts'
import { maxNameLength, namePattern } from '#lib/fields.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import { top } from '#lib/uid.ts'
import { keyLife } from './identities.model.ts'
import * as service from './identities.service.ts'

const fields = { static_keys: '', expiration_time: 'expiration' }

export const eventsIdentitiesV1: Handlers<typeof Identities> = {
  async create(call, { subject, issuer, issuerKeys, expiration }) {
    const expires = expiration ? { expirationTime: toIso(expiration) } : {}
    const staticKeys = { issuer, subject, issuerKeys, audiences: [], ...expires }
    const input = { name: nameOf(subject), description: '', company: '', staticKeys }
    const created = await withFieldNames(fields, service.createIdentity(call, parentFor(call), input, keyLife.v1))
    const keys = created.staticKeys ?? {}
    return {
      $typeName: 'pinfold.platform.events.Identity',
      id: created.uid,
      subject,
      issuer,
      issuerKeys,
      expiration: keys.expirationTime ? timestamp(keys.expirationTime) : undefined,
    } satisfies IdentityMessage
  },
}

/**
 * Group of the new identity. Throws FAILED_PRECONDITION if the caller can create identities in no group or in several groups. In
 * a group of our choice, the keys could have more permissions than the caller.
 */
function parentFor({ reach }: Call): string {
  const [parent, ...others] = reach
  if (parent === undefined) throw permissionDenied()
  if (parent !== top && others.length === 0) return parent
  throw failedPrecondition({
    type: 'PARENT_NOT_UNIQUE',
    description:
      'the request names no group, and you can create identities in several groups; use a token that is limited to one group, or pinfold.platform.iam.Identities/Create with a parent_id',
  })
}

/** Name of an identity for a subject. Characters that names cannot have are replaced. */
function nameOf(subject: string): string {
  const name = subject.toLowerCase().slice(0, maxNameLength)
  return namePattern.test(name) ? name : 'static-keys'
}
