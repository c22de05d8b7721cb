// The capabilities, read from the contract: the one file besides the wire files that knows the generated enum.
import { getOption } from '@bufbuild/protobuf'
import { CapabilitySchema, capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { invalid } from '#lib/errors.ts'

export type Capability = {
  /** Its number in the contract. */
  number: number
  /** Dotted name, as in version 1 and in tokens: `groups.list`. */
  name: string
  /** Name of the enum value, as in version 2: `CAP_IAM_GROUPS_LIST`. */
  enumName: string
  mask: bigint
  /** Only a role that also holds `internal` may contain it. */
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

/** Number of a capability named in our own source. Throws if the contract has no such capability. */
export function capabilityNumber(name: string): number {
  const found = byName.get(name)
  if (!found) throw new Error(`unknown capability ${name}`)
  return found.number
}

/** Mask of dotted names. Undefined for no names. Throws INVALID_ARGUMENT on `cap` for an unknown name. */
export function capabilitiesNamed(names: readonly string[]): bigint | undefined {
  if (names.length === 0) return undefined
  return names.reduce((mask, name) => {
    const known = byName.get(name)
    if (!known) throw invalid({ field: 'cap', description: `${name.slice(0, 64).toWellFormed()} is not a capability` })
    return mask | known.mask
  }, 0n)
}

/**
 * Numbers of dotted names, for a role of version 1. Throws INVALID_ARGUMENT on `capabilities` for an unknown name, or for one
 * that is internal to the product.
 */
export function grantableNumbers(names: readonly string[]): number[] {
  return names.map((name) => {
    const known = byName.get(name)
    if (known && !known.internalOnly && known.name !== 'internal') return known.number
    const why = known ? 'is internal and cannot be granted' : 'is not a capability'
    throw invalid({ field: 'capabilities', description: `${name.slice(0, 64).toWellFormed()} ${why}` })
  })
}

/** Mask of capability numbers. Leaves out numbers that the contract does not have, such as those of a newer version. */
export function maskOf(numbers: Iterable<number>): bigint {
  let mask = 0n
  for (const number of numbers) mask |= capabilities.get(number)?.mask ?? 0n
  return mask
}

export const everyCapability: bigint = maskOf(capabilities.keys())
