// Risks that somebody has accepted: statements that are made, end by themselves or are revoked, and never change otherwise.
import type { App, Call } from '#app.ts'
import { keptPattern } from '#contents/package-pattern.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/events/outbox/emit.ts'
import { requireGroup } from '#domains/iam/groups/groups.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { ownCause } from '#lib/cause.ts'
import { isDigest } from '#lib/digest.ts'
import { AppError, type FieldViolation, found, invalid, refuseIfAny } from '#lib/errors.ts'
import { type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import { newUid, parentOf, rootOf } from '#lib/uid.ts'
import { placesFor } from '../images/seek-images.service.ts'
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
  add('reason', input.reason.trim() === '' ? 'is required' : tooLong(input.reason))
  const latest = new Date(Date.parse(now) + maxDays * 86_400_000).toISOString()
  if (input.expireTime === '') add('expire_time', 'is required')
  else if (input.expireTime <= now) add('expire_time', 'must be in the future')
  else if (input.expireTime > latest) add('expire_time', `must be at most ${maxDays} days ahead`)
  return problems
}

const tooLong = (reason: string): string | undefined =>
  reason.length > maxReason ? `must be at most ${maxReason} characters long` : undefined

/** The group that the event is for. */
async function groupOf(tx: Tx, scope: string): Promise<string> {
  if (await findRepoByUid(tx, scope)) return parentOf(scope)
  return (await requireGroup(tx, scope)).uid
}

export async function getRisk(call: Call, uid: string): Promise<RiskAcceptance> {
  return found(await store.findRisk(call.app.db, uid), riskAcceptanceType, uid)
}

/** Ends it now; one that has ended stays as it is. */
export async function revokeRisk(call: Call, uid: string, reason: string): Promise<RiskAcceptance> {
  const description = tooLong(reason)
  refuseIfAny(description ? [{ field: 'reason', description }] : [])
  return call.app.db.tx(async (tx) => {
    const risk = found(await store.findRisk(tx, uid), riskAcceptanceType, uid)
    if (risk.endTime !== '' || risk.expireTime <= call.now) return risk
    const end = { endTime: call.now, endActor: call.caller.uid, endReason: reason }
    await store.endRisk(tx, uid, end)
    const revoked = { ...risk, ...end }
    const group = await groupOfRisk(tx, risk)
    await emit(tx, call, 'control.scanning.risk.revoked', { subject: uid, group, resource: aRiskAcceptance(revoked) })
    return revoked
  })
}

/** That of a repo may outlive it. */
async function groupOfRisk(tx: Tx, { scopeUid }: RiskAcceptance): Promise<string> {
  const group = await store.groupOfScope(tx, scopeUid)
  return group ?? parentOf(scopeUid)
}

/** A page of those at and below the places. */
export async function listRisks(
  call: Call,
  page: Page,
  { scope, withEnded }: { scope: string; withEnded: boolean },
): Promise<Listed<RiskAcceptance>> {
  const places = [...(await placesFor(call, scope))].sort()
  const rows: RiskAcceptance[] = []
  for (const place of places) {
    if (rows.length > page.size) break
    const most = page.size + 1 - rows.length
    rows.push(...(await store.risksBelow(call.app.db, place, { after: page.after?.uid ?? '', most, withEnded })))
  }
  return toListed(call, page, rows, 0)
}

/** In a transaction: ends some of those whose time has come, and tells of it; answers with how many. */
export async function expireRisks(tx: Tx, app: App, now: string, most: number): Promise<number> {
  const due = await store.dueRisks(tx, now, most)
  for (const risk of due) {
    const ended = { ...risk, endTime: risk.expireTime }
    await store.endRisk(tx, risk.uid, ended)
    const event = { subject: risk.uid, group: await groupOfRisk(tx, risk), resource: anExpiredRisk(ended) }
    await emit(tx, { app, cause: ownCause(app.clock) }, 'control.scanning.risk.expired', event)
  }
  return due.length
}
