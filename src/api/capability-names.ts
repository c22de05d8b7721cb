import { hasOption } from '@bufbuild/protobuf'
import { CapabilitySchema, capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { optionOf } from './option-of.ts'

const names: ReadonlyMap<number, string> = new Map(
  CapabilitySchema.values
    .filter((value) => hasOption(value, capability))
    .map((value) => [value.number, optionOf(value, capability).name]),
)

/** What people call capabilities, such as `repo.create`. */
export function capabilityNames(numbers: readonly number[]): string[] {
  return numbers.map((number) => names.get(number) ?? String(number))
}
