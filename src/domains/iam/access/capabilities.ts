// Capabilities, read from the contract. Besides files that convert messages, only this file uses the generated enum.
import { getOption } from '@bufbuild/protobuf'
import { CapabilitySchema, capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { invalid } from '#lib/errors.ts'

export type Capability = {
  /** Number of the enum value in the contract. */
  number: number
  /** Name with dots, as in version 1 and in tokens: `groups.list`. */
  name: string
  /** Name of the enum value, as in version 2: `CAP_IAM_GROUPS_LIST`. */
  enumName: string
  mask: bigint
  /** True if a role with this capability must also have the capability `internal`. */
  internalOnly: boolean
}

export const capabilities: ReadonlyMap<number, Capability> = new Map(
  CapabilitySchema.values
    .filter((value) => value.number !== 0)
    .map((value) => {
      const option = getOption(value, capability)
      const { name, bit, internalOnly } = option
      return [value.number, { number: value.number, name, enumName: value.name, mask: 1n << BigInt(bit), internalOnly }]
    }),
)

const byName: ReadonlyMap<string, Capability> = new Map([...capabilities.values()].map((c) => [c.name, c]))

/**
 * Number of the capability with this name. Throws if the contract has no such capability, since names in our code must be
 * correct.
 */
export function capabilityNumber(name: string): number {
  const found = byName.get(name)
  if (!found) throw new Error(`unknown capability ${name}`)
  return found.number
}

/**
 * Mask of the capabilities with these dotted names. Undefined for an empty list. Throws INVALID_ARGUMENT for the field `cap` if a
 * name is unknown.
 */
export function capabilitiesNamed(names: readonly string[]): bigint | undefined {
  if (names.length === 0) return undefined
  return names.reduce((mask, name) => {
    const known = byName.get(name)
    if (!known) throw invalid({ field: 'cap', description: `${name.slice(0, 64).toWellFormed()} is not a capability` })
    return mask | known.mask
  }, 0n)
}

/**
 * Numbers of the capabilities with these dotted names, for a role of version 1. Throws INVALID_ARGUMENT for the field
 * `capabilities` if a name is unknown or internal.
 */
export function grantableNumbers(names: readonly string[]): number[] {
  return names.map((name) => {
    const known = byName.get(name)
    if (known && !known.internalOnly && known.name !== 'internal') return known.number
    const why = known ? 'is internal and cannot be granted' : 'is not a capability'
    throw invalid({ field: 'capabilities', description: `${name.slice(0, 64).toWellFormed()} ${why}` })
  })
}

/** Mask of capability numbers. Ignores numbers that the contract does not have, such as those of a newer version. */
export function maskOf(numbers: Iterable<number>): bigint {
  let mask = 0n
  for (const number of numbers) mask |= capabilities.get(number)?.mask ?? 0n
  return mask
}

/** Capabilities to read that a capability to change includes. Callers with the second one need not hold the first one. */
const included: readonly { by: bigint; mask: bigint }[] = [
  ['audit.list', 'role_bindings.update'],
  ['registry.rules.list', 'registry.settings.update'],
].map(([name, by]) => ({ by: maskOf([capabilityNumber(by!)]), mask: maskOf([capabilityNumber(name!)]) }))

/** Adds the capabilities that are included in others. */
export function withIncluded(mask: bigint): bigint {
  return included.reduce((all, one) => ((mask & one.by) === 0n ? all : all | one.mask), mask)
}

export const everyCapability: bigint = maskOf(capabilities.keys())
