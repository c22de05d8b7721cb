// Exemptions from policies for pulls. A digest is allowed with a reason, until a time or until a member ends the exemption.
import { isDigest } from '#lib/digest.ts'
import { type FieldViolation, refuseIfAny } from '#lib/errors.ts'
import type { Kind } from '#lib/events/event-body.ts'
import { type EndingKind, limitHolding, problemOfReason, problemOfUntil } from './endings.service.ts'
import type { DigestException, NewException } from './rules.model.ts'
import type { EndingTable } from './rules.store.ts'

/** Most exemptions of an organization that have not ended. */
export const mostExceptions = 1000

/** Exemptions from one kind of policy. `field` is the name of the exemption in requests, and `days` is its longest duration. */
export function exceptionKind(
  {
    table,
    ...kind
  }: Pick<EndingKind<DigestException, NewException>, 'type' | 'events'> & {
    table: EndingTable<DigestException>
    resource: Kind<DigestException>
  },
  { field, quota, days }: { field: string; quota: string; days: number },
): EndingKind<DigestException, NewException> {
  return {
    ...{ ...kind, table },
    limit: limitHolding(table, quota, mostExceptions),
    read({ now }, _scope, { digest, reason, expireTime }) {
      const problems: FieldViolation[] = []
      const add = (member: string, description: string | undefined) => {
        if (description) problems.push({ field: `${field}.${member}`, description })
      }
      add('digest', isDigest(digest) ? undefined : 'is not a digest')
      add('reason', problemOfReason(reason))
      add('expire_time', problemOfUntil(expireTime, now, days))
      refuseIfAny(problems)
      return { digest, reason, expireTime }
    },
  }
}
