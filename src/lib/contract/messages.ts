// Conversion between messages of the contract and values of models, based on the protobuf descriptors.
import { type DescField, type DescMessage, type Message, type MessageShape, ScalarType } from '@bufbuild/protobuf'
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { invalid } from '../errors.ts'
import { timestamp } from '../timestamp.ts'

/**
 * Type of a message field in a model. Times are ISO text, and enums are numbers. 64-bit integers are a bigint, number or text.
 * Messages have no type name.
 */
type Modeled<V> = V extends Timestamp
  ? string
  : V extends bigint
    ? bigint | number | string
    : V extends number
      ? number
      : V extends Uint8Array
        ? V
        : V extends Message
          ? V | Model<V>
          : V extends readonly (infer E)[]
            ? readonly Modeled<E>[]
            : V extends { case: infer C; value: infer W }
              ? { case: C; value: Modeled<W> }
              : V extends { [key: string]: infer E }
                ? { readonly [key: string]: Modeled<E> }
                : V

/** Type of a message in a model. */
type Model<M> = { [K in keyof M as K extends keyof Message ? never : K]: Modeled<M[K]> }

/** Like Model, but some members have other names in the model. */
type Renamed<M, N> = Model<Omit<M, keyof N>> & { [K in keyof N & keyof M as N[K] & string]: Modeled<M[K]> }

type Names<M> = { readonly [K in Exclude<keyof M, keyof Message>]?: string }
type Convert = (value: unknown) => unknown
type Member = { to: string; from: string; convert: Convert | undefined }

/**
 * Returns a function that converts a value of a model to a message. `names` maps names in the message to names in the model,
 * where they differ. Nested values are converted too, unless they are messages already. An empty time becomes an unset field.
 */
export function messageOf<D extends DescMessage, const N extends Names<MessageShape<D>> = object>(
  desc: D,
  names: N = {} as N,
): (value: Renamed<MessageShape<D>, N>) => MessageShape<D> {
  return converterOf(desc, names as Record<string, string>) as (value: object) => MessageShape<D>
}

function converterOf(desc: DescMessage, names: Readonly<Record<string, string>>): Convert {
  // Compiled when the first message is converted, since a message type may contain itself.
  let members: readonly Member[] | undefined
  return (value) => {
    members ??= desc.members.map((member): Member => {
      const to = member.localName
      const convert = member.kind === 'oneof' ? choiceOf(member.fields) : conversionOf(member)
      return { to, from: names[to] ?? to, convert }
    })
    const message: Record<string, unknown> = { $typeName: desc.typeName }
    for (const { to, from, convert } of members) {
      const given = (value as Record<string, unknown>)[from]
      const made = given !== undefined && convert ? convert(given) : given
      if (made !== undefined) message[to] = made
    }
    return message
  }
}

/** Function that converts a value of the model to a message field. Undefined if no conversion is needed. */
function conversionOf(field: DescField): Convert | undefined {
  if (field.fieldKind === 'list') {
    const one = singleOf(field.listKind === 'message' ? field.message : undefined, field.scalar)
    return one && ((values) => (values as unknown[]).map(one))
  }
  if (field.fieldKind === 'map') {
    const one = singleOf(field.mapKind === 'message' ? field.message : undefined, field.scalar)
    return (
      one && ((values) => Object.fromEntries(Object.entries(values as object).map(([key, value]) => [key, one(value)])))
    )
  }
  return singleOf(field.fieldKind === 'message' ? field.message : undefined, field.scalar)
}

function singleOf(message: DescMessage | undefined, scalar: ScalarType | undefined): Convert | undefined {
  if (message?.typeName === TimestampSchema.typeName)
    return (time) => (time === '' ? undefined : timestamp(time as string))
  if (message) {
    const convert = converterOf(message, {})
    return (value) => ('$typeName' in (value as object) ? value : convert(value))
  }
  return scalar === ScalarType.INT64 || scalar === ScalarType.UINT64
    ? (value) => BigInt(value as number | string)
    : undefined
}

function choiceOf(fields: readonly DescField[]): Convert {
  const conversions = new Map(fields.map((field) => [field.localName, conversionOf(field)]))
  return (choice) => {
    const { case: set, value } = choice as { case: string | undefined; value?: unknown }
    const convert = set === undefined ? undefined : conversions.get(set)
    return convert ? { case: set, value: convert(value) } : choice
  }
}

/** Selected members of a message in a request. Throws INVALID_ARGUMENT for `field` if the message is missing. */
export function contentOf<M extends Message, K extends Exclude<keyof M, keyof Message>>(
  message: M | undefined,
  field: string,
  ...members: readonly K[]
): Pick<M, K> {
  const content: Partial<Pick<M, K>> = {}
  const given = required(message, field)
  for (const member of members) if (given[member] !== undefined) content[member] = given[member]
  return content as Pick<M, K>
}

/** Returns a member of a request. Throws INVALID_ARGUMENT for `field` if it is missing. */
export function required<T>(member: T | undefined, field: string): T {
  if (member === undefined) throw invalid({ field, description: 'is required' })
  return member
}
