import { hasOption } from '@bufbuild/protobuf'
import type { Access } from '#app.ts'
import type { Caller } from '#caller.ts'
import { CapabilitySchema, capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { invalid, missingCapabilities, permissionDenied } from '#lib/errors.ts'
import { isUid, top } from '#lib/uid.ts'
import { optionOf } from './option-of.ts'

/**
 * Checks the permission that the contract declares for the method. Runs before any look-up, so that strangers cannot find out
 * which resources exist. `scope` is the uid in the scope field of the request.
 */
export function permitAt(access: Access & { mode: 'scoped' }, caller: Caller, scope: string): void {
  if (scope === '') throw invalid({ field: access.scope.at(-1)!, description: 'is required' })
  if (!isUid(scope)) throw invalid({ field: access.scope.at(-1)!, description: 'is not a uid' })
  if (!caller.rights.holds(scope, access.capabilities)) throw lacks(access.capabilities, caller, scope)
}

/** Error with the missing capabilities. The message depends only on the caller's permissions, not on whether the scope exists. */
function lacks(needs: readonly number[], caller: Caller, scope: string): Error {
  const missing = capabilityNames(needs.filter((one) => !caller.rights.holds(scope, [one])))
  if (missing.length === 0) return permissionDenied()
  return permissionDenied(missingCapabilities(missing, caller.token?.narrowed))
}

/** Checks the permission of a method that concerns the whole server. Runs before the body is read. */
export function permitEverywhere(access: Access & { mode: 'everywhere' }, caller: Caller): void {
  if (!caller.rights.holds(top, access.capabilities))
    throw permissionDenied('only the operator of this server can do this')
}

/** Groups on which the caller holds all capabilities of an unscoped method. */
export function reachOf(access: Access, caller: Caller): readonly string[] {
  if (access.mode !== 'unscoped' || access.capabilities.length === 0) return []
  const roots = caller.rights.roots(access.capabilities)
  return roots.includes(top) ? [top] : roots
}

const names: ReadonlyMap<number, string> = new Map(
  CapabilitySchema.values
    .filter((value) => hasOption(value, capability))
    .map((value) => [value.number, optionOf(value, capability).name]),
)

/** Dotted names of capabilities, such as `repo.create`. */
function capabilityNames(numbers: readonly number[]): string[] {
  return numbers.map((number) => names.get(number) ?? String(number))
}
