import type { Access, Caller } from '#app.ts'
import { invalid, permissionDenied } from '#lib/errors.ts'
import { isUid, top } from '#lib/uid.ts'

/**
 * What the contract declares for a method, decided before its handler runs and before anything is looked up, so that a
 * stranger cannot tell what exists. `scope` is the uid in the request's scope field.
 */
export function permitAt(access: Access & { mode: 'scoped' }, caller: Caller, scope: string): void {
  if (scope === '') throw invalid({ field: access.scope.at(-1)!, description: 'is required' })
  if (!isUid(scope)) throw invalid({ field: access.scope.at(-1)!, description: 'is not a uid' })
  if (!caller.rights.holds(scope, access.capabilities)) throw permissionDenied()
}

/** For the methods of the operator, which are about the whole server; decided before their body is read. */
export function permitEverywhere(access: Access & { mode: 'everywhere' }, caller: Caller): void {
  if (!caller.rights.holds(top, access.capabilities)) throw permissionDenied('only the operator may do this')
}

/** Where an unscoped method may look: the places at and below which the caller holds all that the method requires. */
export function reachOf(access: Access, caller: Caller): readonly string[] {
  if (access.mode !== 'unscoped' || access.capabilities.length === 0) return []
  const roots = caller.rights.roots(access.capabilities)
  return roots.includes(top) ? [top] : roots
}
