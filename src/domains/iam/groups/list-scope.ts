import type { Call } from '#app.ts'
import { invalid, notFound, permissionDenied } from '#lib/errors.ts'
import type { UidpFilter } from '#lib/lists/lists.ts'
import type { Branch } from '#lib/lists/paging.ts'
import { isAtOrBelow, isUid, lineage, parentOf, top } from '#lib/uid.ts'
import { groupType } from './groups.model.ts'
import { groupExists, nodeExists } from './groups.store.ts'

export type ScopeRules = {
  /**
   * True for lists of groups. Then the groups on which the caller holds the capability are listed too, not only resources below
   * them.
   */
  inclusive?: boolean
  /** True if resources without a parent, such as built-in roles, are listed for all callers. */
  publicRoots?: boolean
  /** Type of resources that can be a parent in the filter, and a function that checks if one exists. The default is groups. */
  parentType?: string
  parentExists?: (uid: string) => Promise<boolean>
}

const maxIds = 1000

/** Branches of the hierarchy to list: those that the filter selects and that the caller can see. */
export async function listScope(call: Call, filter: UidpFilter | undefined, rules: ScopeRules): Promise<Branch[]> {
  const { ancestorsOf = '', descendantsOf = '', childrenOf = '', inRoot = false, ids = [] } = filter ?? {}
  const { parentExists = (uid) => groupExists(call.app.db, uid) } = rules
  // Every resource has ancestors, but only a group or another parent has descendants.
  await checkScope(call, 'ancestors_of', ancestorsOf, rules, (uid) => nodeExists(call.app.db, call.app.resources, uid))
  await checkScope(call, 'descendants_of', descendantsOf, rules, parentExists)
  await checkScope(call, 'children_of', childrenOf, rules, parentExists)

  if (ids.length > 0 || ancestorsOf !== '') {
    const wanted = (ids.length > 0 ? checkIds(ids) : lineage(ancestorsOf).slice(1)).filter(
      (uid) =>
        isVisible(call, uid, rules) &&
        (ancestorsOf === '' || (uid !== ancestorsOf && isAtOrBelow(ancestorsOf, uid))) &&
        (descendantsOf === '' || (uid !== descendantsOf && isAtOrBelow(uid, descendantsOf))) &&
        (childrenOf === '' || parentOf(uid) === childrenOf) &&
        (!inRoot || parentOf(uid) === top),
    )
    return wanted.length > 0 ? [{ uids: [...new Set(wanted)] }] : []
  }
  if (inRoot) return childrenOf === '' && descendantsOf === '' ? visibleRoots(call, rules) : []
  if (childrenOf !== '') {
    return descendantsOf === '' || isAtOrBelow(childrenOf, descendantsOf) ? [{ childrenOf }] : []
  }
  if (descendantsOf !== '') return [{ below: descendantsOf }]
  return allVisibleRoots(call, rules)
}

/**
 * Throws PERMISSION_DENIED without permission, and then NOT_FOUND if the resource is missing. In this order, the error does not
 * tell strangers whether the resource exists.
 */
async function checkScope(
  call: Call,
  member: string,
  uid: string,
  { parentType = groupType }: ScopeRules,
  exists: (uid: string) => Promise<boolean>,
): Promise<void> {
  if (uid === '') return
  if (!isUid(uid)) throw invalid({ field: `uidp.${member}`, description: 'is not a uid' })
  if (!call.reach.some((group) => isAtOrBelow(uid, group))) throw permissionDenied()
  if (!(await exists(uid))) throw notFound(parentType, uid)
}

function checkIds(ids: readonly string[]): readonly string[] {
  if (ids.length > maxIds) throw invalid({ field: 'uidp.ids', description: `must have at most ${maxIds} uids` })
  if (!ids.every(isUid)) throw invalid({ field: 'uidp.ids', description: 'has a value that is not a uid' })
  return ids
}

function isVisible(call: Call, uid: string, rules: ScopeRules): boolean {
  if (rules.publicRoots && parentOf(uid) === top) return true
  return call.reach.some((group) => isAtOrBelow(uid, group) && (rules.inclusive || uid !== group))
}

function visibleRoots(call: Call, rules: ScopeRules): Branch[] {
  if (rules.publicRoots || call.reach.includes(top)) return [{ childrenOf: top }]
  const roots = rules.inclusive ? call.reach.filter((group) => parentOf(group) === top) : []
  return roots.length > 0 ? [{ uids: roots }] : []
}

function allVisibleRoots(call: Call, rules: ScopeRules): Branch[] {
  const below = call.reach.map((group): Branch => ({ below: group }))
  if (call.reach.includes(top)) return below
  if (rules.inclusive && call.reach.length > 0) return [...below, { uids: [...call.reach] }]
  return rules.publicRoots ? [...below, { childrenOf: top }] : below
}
