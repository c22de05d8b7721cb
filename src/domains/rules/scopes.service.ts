// Common functions for rules in a scope: a group with everything below it, or a repository.
import type { Call } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { groupExists, requireGroup } from '#domains/iam/groups/groups.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { AppError, invalid, notFound, permissionDenied } from '#lib/errors.ts'
import { type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import { isAtOrBelow, isUid, parentOf } from '#lib/uid.ts'

/** Lists of one table. A store creates them with `scopeList`, whose type services must not use. */
export type ScopedList<T, F> = {
  page(reader: Reader, scopes: readonly string[], page: Page, filter: F): Promise<T[]>
  count(reader: Reader, scopes: readonly string[], filter: F): Promise<number>
  below(reader: Reader, scope: string, filter: F, most: number): Promise<T[]>
}

/** One page of the rows in the scope, or of all rows that the caller has access to. */
export async function listBelow<T extends { uid: string }, F>(
  call: Call,
  page: Page,
  scope: string,
  list: Pick<ScopedList<T, F>, 'page' | 'count'>,
  filter: F,
): Promise<Listed<T>> {
  const { db } = call.app
  const scopes = await findScopes(call, scope)
  const total = await list.count(db, scopes, filter)
  return toListed(call, page, await list.page(db, scopes, page, filter), total)
}

/**
 * The given scope, or all scopes that the caller has access to. Permission is checked first, so a caller without access cannot
 * learn whether the scope exists.
 */
export async function findScopes(call: Call, scope: string): Promise<readonly string[]> {
  if (scope === '') return call.reach
  await requireScope(call, scope)
  return [scope]
}

/**
 * Throws INVALID_ARGUMENT for an invalid uid, PERMISSION_DENIED if the caller has no access, and NOT_FOUND if the scope does not
 * exist.
 */
async function requireScope(call: Call, scope: string): Promise<void> {
  if (!isUid(scope)) throw invalid({ field: 'scope_uid', description: 'is not a uid' })
  if (!call.reach.some((group) => isAtOrBelow(scope, group))) throw permissionDenied()
  if (!(await isScope(call.app.db, scope))) throw notFound('iam.pinfold.dev/Group', scope)
}

async function isScope(reader: Reader, scope: string): Promise<boolean> {
  return (await groupExists(reader, scope)) || (await findRepoByUid(reader, scope)) !== undefined
}

/** Group that events of a scope belong to. Throws NOT_FOUND if the scope does not exist. */
export async function groupOf(tx: Tx, scope: string): Promise<string> {
  if (await findRepoByUid(tx, scope)) return parentOf(scope)
  return (await requireGroup(tx, scope)).uid
}

/** Group that events of an existing row belong to. The repository of the row may have been deleted. */
export async function groupOfRow(tx: Tx, { scopeUid }: { scopeUid: string }): Promise<string> {
  return (await groupExists(tx, scopeUid)) ? scopeUid : parentOf(scopeUid)
}

/** Names of quotas in messages. The metadata of errors has other names, which do not change. */
const quotaTexts: Readonly<Record<string, string>> = {
  gates: 'admission policies',
  'exceptions from gates': 'exemptions from admission policies',
  'rules of pulls': 'cooldown policies',
  'exceptions from rules of pulls': 'exemptions from cooldown policies',
  holds: 'legal holds',
  quarantines: 'images in quarantine',
  'plans of retention at a time': 'retention plans',
  'patterns of tags in rules and holds': 'tag patterns in its rules and legal holds',
  'former rules whose dates are to come': 'former retention policies with dates in the future',
  'patterns of tags in former rules whose dates are to come':
    'tag patterns in former retention policies with dates in the future',
}

/** Error for a reached limit of an organization. */
export function limitReached(quota: string, limit: number, used: number): AppError {
  const most = `an organization can have at most ${limit} ${quotaTexts[quota] ?? quota}`
  return new AppError('RESOURCE_EXHAUSTED', `limit reached: ${most}`, {
    reason: 'RESOURCE_LIMIT_EXCEEDED',
    metadata: { quota, used: String(used), limit: String(limit) },
  })
}
