// Quotas of organizations. Callers who can see the organization read them, and only the operator sets them.
import type { Call } from '#app.ts'
import { emit } from '#domains/outbox/emit.ts'
import { type FieldViolation, found, refuseIfAny } from '#lib/errors.ts'
import { parentOf, top } from '#lib/uid.ts'
import { type Group, groupType } from './groups.model.ts'
import { countGroups, findGroup, setResourceLimits } from './groups.store.ts'
import { limitIn } from './limits.service.ts'
import {
  maxCount,
  type Quota,
  type QuotaChange,
  type QuotaName,
  type Quotas,
  quotaNames,
  quotas,
  someQuotas,
} from './quotas.model.ts'

export async function getQuotas({ app: { db, config, hooks } }: Call, uid: string): Promise<Quotas> {
  const organization = organizationOf(await findGroup(db, uid), uid)
  const used: Partial<Record<QuotaName, number>> = { groups: await countGroups(db, uid) }
  for (const hook of hooks.quotaUse) Object.assign(used, await hook(db, uid))
  const withUsed = quotasOf(config, organization).map((one) => {
    const count = used[one.name]
    return count === undefined ? one : { ...one, used: count }
  })
  return { organization: uid, quotas: withUsed }
}

/** Sets some limits and keeps the others. Returns all limits, without the usage. */
export async function setQuotas(call: Call, uid: string, changes: readonly QuotaChange[]): Promise<Quotas> {
  checkChanges(changes)
  const { config, db } = call.app
  const set = await db.tx(async (tx) => {
    const before = organizationOf(await findGroup(tx, uid), uid)
    const resourceLimits = { ...before.resourceLimits }
    for (const { name, limit } of changes) {
      if (limit === undefined) delete resourceLimits[name]
      else resourceLimits[name] = limit
    }
    const after = { ...before, resourceLimits, updateTime: call.now }
    await setResourceLimits(tx, before, after)
    const all: Quotas = { organization: uid, quotas: quotasOf(config, after) }
    await emit(tx, call, 'control.quotas.set', { subject: uid, group: uid, resource: someQuotas(all) })
    return all
  })
  call.log.info('quotas set', { uid, quotas: changes.map(({ name }) => name) })
  return set
}

function organizationOf(group: Group | undefined, uid: string): Group {
  return found(group && parentOf(group.uid) === top ? group : undefined, groupType, uid)
}

function quotasOf(config: Call['app']['config'], { resourceLimits }: Group): Quota[] {
  return quotaNames.map((name) => {
    return { name, limit: limitIn(config, resourceLimits, name), own: resourceLimits[name] !== undefined }
  })
}

function checkChanges(changes: readonly QuotaChange[]): void {
  const problems: FieldViolation[] = []
  if (changes.length === 0) problems.push({ field: 'limits', description: 'must have at least one limit' })
  const names = new Set<string>()
  for (const [i, { name, limit = 0 }] of changes.entries()) {
    const addProblem = (member: string, description: string) =>
      problems.push({ field: `limits[${i}].${member}`, description })
    if (!Object.hasOwn(quotas, name)) addProblem('name', `must be one of: ${quotaNames.join(', ')}`)
    if (names.has(name)) addProblem('name', 'is given twice')
    names.add(name)
    const most = name === 'bytes' ? Number.MAX_SAFE_INTEGER : maxCount
    if (limit < 0 || limit > most) addProblem('limit', `must be from 0 to ${most}`)
  }
  refuseIfAny(problems)
}
