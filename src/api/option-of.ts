import { type AnyDesc, type DescExtension, getOption } from '@bufbuild/protobuf'

const known = new WeakMap<AnyDesc, Map<DescExtension, unknown>>()

/**
 * Value of an option in the contract. Cached, since `getOption` decodes the option each time. Callers must not change the value.
 */
export const optionOf = ((of: AnyDesc, option: DescExtension): unknown => {
  const options = known.get(of) ?? new Map<DescExtension, unknown>()
  if (!options.has(option)) known.set(of, options.set(option, getOption(of as never, option as never)))
  return options.get(option)
}) as typeof getOption
