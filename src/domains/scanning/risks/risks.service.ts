// Accepted risks: validates requests, applies limits, and adopts VEX statements.
import type { Call } from '#app.ts'
import { canonicalPattern } from '#contents/package-pattern.ts'
import { type EndingKind, problemOfReason, problemOfUntil } from '#domains/rules/endings.service.ts'
import { isDigest } from '#lib/digest.ts'
import { AppError, type FieldViolation, invalid, refuseIfAny } from '#lib/errors.ts'
import { rootOf } from '#lib/uid.ts'
import { canonicalName, problemOfName } from '../image-findings/vulnerability-names.service.ts'
import { adoptedStatement } from '../scan-reports/statements.service.ts'
import {
  maxDays,
  mostLive,
  mostOfOne,
  type RiskAcceptance,
  riskAcceptanceType,
  toExpiredRiskResource,
  toRiskAcceptanceResource,
} from './risks.model.ts'
import * as store from './risks.store.ts'

export type NewRisk = Pick<
  RiskAcceptance,
  'vulnerability' | 'digest' | 'package' | 'reason' | 'expireTime' | 'statement'
>

export const riskKind: EndingKind<RiskAcceptance, NewRisk> = {
  type: riskAcceptanceType,
  resource: toRiskAcceptanceResource,
  events: { created: 'control.scanning.risk.accepted', ended: 'control.scanning.risk.revoked' },
  expired: { event: 'control.scanning.risk.expired', resource: toExpiredRiskResource },
  table: store.riskTable,
  /** Validates a request to accept a risk, or to adopt a VEX statement on an image. */
  async read(call, scope, given) {
    const { stated, ...input } =
      given.statement === '' ? { ...given, stated: '' } : await adoptStatement(call, scope, given)
    refuseIfAny(problemsOf(input, call.now))
    return {
      ...{ ...input, stated },
      vulnerability: await canonicalName(call.app.db, input.vulnerability, [rootOf(scope)]),
      package: input.package === '' ? '' : canonicalPattern(input.package)!,
    }
  },
  async limit(tx, { scopeUid, vulnerability }) {
    const live = await store.countLive(tx, scopeUid, mostLive)
    const same = await store.countOf(tx, scopeUid, vulnerability, mostOfOne)
    if (live >= mostLive)
      throw tooMany(`the organization has ${mostLive} accepted risks, which is the limit; revoke some of them first`)
    if (same >= mostOfOne)
      throw tooMany(
        `the vulnerability has ${mostOfOne} accepted risks in this scope, which is the limit; revoke some of them first`,
      )
  },
}

/** Adopts a VEX statement. Throws INVALID_ARGUMENT if the vulnerability in the request is not the one in the statement. */
async function adoptStatement(call: Call, repoUid: string, given: NewRisk): Promise<NewRisk & { stated: string }> {
  const { digest, statement, package: named } = given
  const adopted = await adoptedStatement(call, { repoUid, digest, statement, package: named })
  if (given.vulnerability !== '' && given.vulnerability !== adopted.vulnerability) {
    const description = `must be empty or ${adopted.vulnerability}, the vulnerability of the statement`
    throw invalid({ field: 'risk_acceptance.vulnerability', description })
  }
  return { ...given, ...adopted }
}

const tooMany = (message: string): AppError =>
  new AppError('RESOURCE_EXHAUSTED', message, { reason: 'RESOURCE_LIMIT_EXCEEDED' })

function problemsOf(input: NewRisk, now: string): FieldViolation[] {
  const problems: FieldViolation[] = []
  const add = (member: string, description: string | undefined) => {
    if (description) problems.push({ field: `risk_acceptance.${member}`, description })
  }
  add('vulnerability', problemOfName(input.vulnerability))
  if (input.digest !== '' && !isDigest(input.digest)) add('digest', 'is not a digest')
  if (input.package.length > 512 || (input.package !== '' && canonicalPattern(input.package) === undefined)) {
    add('package', 'must be a package URL of a supported type, such as pkg:deb/debian/openssl')
  }
  add('reason', problemOfReason(input.reason))
  add('expire_time', problemOfUntil(input.expireTime, now, maxDays))
  return problems
}
