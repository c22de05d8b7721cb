// Risks that somebody has accepted: statements that are made, end by themselves or are revoked, and never change otherwise.
import type { App, Call } from '#app.ts'
import { keptPattern } from '#contents/package-pattern.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import {
  asOf,
  type EndingKind,
  expireDue,
  problemOfLength,
  problemOfUntil,
  revokeNow,
} from '#domains/rules/endings.service.ts'
import { groupOf, listBelow } from '#domains/rules/places.service.ts'
import { isDigest } from '#lib/digest.ts'
import { AppError, type FieldViolation, found, invalid, refuseIfAny } from '#lib/errors.ts'
import type { Listed, Page } from '#lib/lists/paging.ts'
import { newUid, rootOf } from '#lib/uid.ts'
import { canonicalName, problemOfName } from '../known/names.service.ts'
import { adoptedStatement } from '../outside/statements.service.ts'
import {
  anExpiredRisk,
  aRiskAcceptance,
  maxDays,
  maxReason,
  mostLive,
  mostOfOne,
  type RiskAcceptance,
  riskAcceptanceType,
} from './risks.model.ts'
import * as store from './risks.store.ts'

export type NewRisk = Pick<
  RiskAcceptance,
  'vulnerability' | 'digest' | 'package' | 'reason' | 'expireTime' | 'statement'
>

/**
 * Accepts a vulnerability in a group or a repo, or what a statement says of one in an image. Throws NOT_FOUND for a place that
 * is not there.
 */
export async function acceptRisk(call: Call, scope: string, given: NewRisk): Promise<RiskAcceptance> {
  const { stated, ...input } = given.statement === '' ? { ...given, stated: '' } : await adopting(call, scope, given)
  refuseIfAny(problemsOf(input, call.now))
  const { db } = call.app
  const vulnerability = await canonicalName(db, input.vulnerability, [rootOf(scope)])
  const risk: RiskAcceptance = {
    ...{ uid: newUid(scope), scopeUid: scope, digest: input.digest, vulnerability, reason: input.reason },
    package: input.package === '' ? '' : keptPattern(input.package)!,
    ...{ actor: call.caller.uid, createTime: call.now, expireTime: input.expireTime },
    ...{ endTime: '', endActor: '', endReason: '', statement: input.statement, stated },
  }
  await db.tx(async (tx) => {
    const group = await groupOf(tx, scope)
    const [live, same] = [
      await store.countLive(tx, scope, mostLive),
      await store.countOf(tx, scope, vulnerability, mostOfOne),
    ]
    if (live >= mostLive) throw tooMany(`the organisation has accepted ${mostLive} risks already`)
    if (same >= mostOfOne) throw tooMany(`the risk was accepted ${mostOfOne} times there already`)
    await store.insertRisk(tx, group, risk)
    const resource = aRiskAcceptance(risk)
    await emit(tx, call, 'control.scanning.risk.accepted', { subject: risk.uid, group, resource })
  })
  call.log.info('risk accepted', { uid: risk.uid, vulnerability })
  return risk
}

/** What is said of the vulnerability besides has to be what the statement says. */
async function adopting(call: Call, repoUid: string, given: NewRisk): Promise<NewRisk & { stated: string }> {
  const { digest, statement, package: named } = given
  const adopted = await adoptedStatement(call, { repoUid, digest, statement, package: named })
  if (given.vulnerability !== '' && given.vulnerability !== adopted.vulnerability) {
    const description = `must be empty, or ${adopted.vulnerability} as in the statement`
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
  if (input.package.length > 512 || (input.package !== '' && keptPattern(input.package) === undefined)) {
    add('package', 'is not a package URL of a type that is compared')
  }
  add('reason', input.reason.trim() === '' ? 'is required' : problemOfLength(input.reason, maxReason))
  add('expire_time', problemOfUntil(input.expireTime, now, maxDays))
  return problems
}

export async function getRisk(call: Call, uid: string): Promise<RiskAcceptance> {
  return asOf(found(await store.findRisk(call.app.db, uid), riskAcceptanceType, uid), call.now)
}

const kind: EndingKind<RiskAcceptance> = {
  type: riskAcceptanceType,
  maxReason,
  store: { find: store.findRisk, end: store.endRisk, due: store.dueRisks },
  revoked: (tx, call, { one, group }) =>
    emit(tx, call, 'control.scanning.risk.revoked', { subject: one.uid, group, resource: aRiskAcceptance(one) }),
  expired: (tx, by, { one, group }) =>
    emit(tx, by, 'control.scanning.risk.expired', { subject: one.uid, group, resource: anExpiredRisk(one) }),
}

/** Ends it now; one that has ended stays as it is. */
export const revokeRisk = (call: Call, uid: string, reason: string): Promise<RiskAcceptance> =>
  revokeNow(kind, call, uid, reason)

/** A page of those at and below the places. */
export async function listRisks(
  call: Call,
  page: Page,
  { scope, withEnded }: { scope: string; withEnded: boolean },
): Promise<Listed<RiskAcceptance>> {
  const listed = await listBelow(call, page, scope, store.riskList, { now: withEnded ? undefined : call.now })
  return { ...listed, items: listed.items.map((one) => asOf(one, call.now)) }
}

/** In a transaction: ends some of those whose time has come, and tells of it; answers with how many. */
export const expireRisks = (tx: Tx, app: App, now: string, most: number): Promise<number> =>
  expireDue(kind, tx, app, { now, most })
