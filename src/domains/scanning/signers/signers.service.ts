// Trusted signers: keys that a member trusts in a scope, until a time or until a member ends the trust. A signed statement is in
// force from its verification until the trust ends.
import { type EndingKind, problemOfLength, problemOfUntil } from '#domains/rules/endings.service.ts'
import { maxReason } from '#domains/rules/rules.model.ts'
import { publicKeyOf } from '#lib/crypto/public-keys.ts'
import { AppError, type FieldViolation, invalid, refuseIfAny } from '#lib/errors.ts'
import {
  maxDays,
  maxName,
  most,
  type Signer,
  signerType,
  toExpiredSignerResource,
  toSignerResource,
} from './signers.model.ts'
import * as store from './signers.store.ts'

export type NewSigner = Pick<Signer, 'name' | 'publicKey' | 'reason' | 'expireTime'>

export const signerKind: EndingKind<Signer, NewSigner> = {
  type: signerType,
  resource: toSignerResource,
  events: { created: 'control.scanning.signer.trusted', ended: 'control.scanning.signer.revoked' },
  expired: { event: 'control.scanning.signer.expired', resource: toExpiredSignerResource },
  table: store.signerTable,
  read(call, _scope, given) {
    const key = publicKeyOf(given.publicKey)
    const problems = problemsOf(given, call.now)
    if (typeof key === 'string') throw invalid({ field: 'vex_signer.public_key', description: key }, ...problems)
    refuseIfAny(problems)
    const { name, reason, expireTime } = given
    return { name, reason, expireTime, publicKey: key.pem, fingerprint: key.fingerprint }
  },
  async limit(tx, { scopeUid }) {
    const { there, all } = await store.countLive(tx, scopeUid, most.organization)
    if (there >= most.scope)
      throw tooMany(`the scope has ${most.scope} trusted signers, which is the limit; revoke some of them first`)
    if (all >= most.organization)
      throw tooMany(
        `the organization has ${most.organization} trusted signers, which is the limit; revoke some of them first`,
      )
  },
  /** When the trust in a signer ends, the search for existing documents of the signer ends too. */
  changed: async (tx, { uid, endTime }) => (endTime === '' ? undefined : store.noteQueuedReport(tx, uid, -1)),
}

const tooMany = (message: string): AppError =>
  new AppError('RESOURCE_EXHAUSTED', message, { reason: 'RESOURCE_LIMIT_EXCEEDED' })

function problemsOf({ name, reason, expireTime }: NewSigner, now: string): FieldViolation[] {
  const problems: FieldViolation[] = []
  const add = (member: string, description: string | undefined) => {
    if (description) problems.push({ field: `vex_signer.${member}`, description })
  }
  if (name.trim() === '') add('name', 'is required')
  else if (name.length > maxName) add('name', `must be at most ${maxName} characters long`)
  else if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name)) add('name', 'must be one line without control characters')
  add('reason', problemOfLength(reason, maxReason))
  add('expire_time', problemOfUntil(expireTime, now, maxDays))
  return problems
}
