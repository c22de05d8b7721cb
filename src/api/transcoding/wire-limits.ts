// Limits on the bytes of a protobuf message, checked before it is decoded.
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import type { JsonLimits } from '#lib/json/json-limits.ts'

/**
 * Known field of a message. `inside` has the fields of a nested message. `packable` is true for a list of numbers, which may be
 * packed.
 */
type KnownField = { wireType: number; packable: boolean; inside: (() => Shape) | undefined }
type Shape = ReadonlyMap<number, KnownField>

const [varint, fixed64, delimited, fixed32] = [0, 1, 2, 5]
const cutOff = 'is not a valid protobuf message: it is cut off'
const otherType = 'has a field whose wire type differs from the API'
const none: Shape = new Map()

/**
 * Description of the limit that a message exceeds, or of an error in its encoding. Undefined if there is none. Counts fields and
 * list elements at all depths, also unknown fields, in one pass without allocations. Without `desc`, the message is treated as
 * one without nested messages. The decoder does not compare wire types, and reads past the end of a nested message. Both are
 * refused here, so the decoder never reads more than was counted.
 */
export function wireProblem(desc: DescMessage | undefined, bytes: Uint8Array, limits: JsonLimits): string | undefined {
  return new Scan(bytes, limits).message(desc ? shapeOf(desc) : none, bytes.length, 1)
}

class Scan {
  readonly #bytes: Uint8Array
  readonly #limits: JsonLimits
  #at = 0
  #members = 0

  constructor(bytes: Uint8Array, limits: JsonLimits) {
    this.#bytes = bytes
    this.#limits = limits
  }

  message(shape: Shape, end: number, depth: number): string | undefined {
    if (depth > this.#limits.depth) return `is nested deeper than ${this.#limits.depth} levels`
    while (this.#at < end) {
      if (++this.#members > this.#limits.members) return this.#tooMany()
      const tag = this.#number()
      if (tag < 0) return cutOff
      if (tag < 8) return 'has a field with the invalid number 0'
      const problem = this.#field(shape.get(tag >>> 3), tag & 7, end, depth)
      if (problem !== undefined) return problem
    }
    return undefined
  }

  #field(known: KnownField | undefined, wireType: number, end: number, depth: number): string | undefined {
    const isPacked = wireType === delimited && known?.packable === true
    if (known && known.wireType !== wireType && !isPacked) return otherType
    if (wireType === delimited) {
      const length = this.#number()
      const stop = this.#at + length
      if (length < 0 || stop > end) return cutOff
      if (known?.inside) return this.message(known.inside(), stop, depth + 1)
      if (isPacked && !this.#countPacked(known.wireType, stop)) return this.#tooMany()
      this.#at = stop
      return undefined
    }
    if (wireType === varint) {
      for (let i = 0; this.#bytes[this.#at]! >= 0x80; i++) if (i === 9 || ++this.#at >= end) return cutOff
      this.#at++
    } else if (wireType === fixed64) this.#at += 8
    else if (wireType === fixed32) this.#at += 4
    else return 'has a protobuf group, which the API does not use'
    return this.#at > end ? cutOff : undefined
  }

  /** Counts the packed numbers up to `stop`. Returns false if there are too many. */
  #countPacked(wireType: number, stop: number): boolean {
    const bytes = this.#bytes
    if (wireType !== varint) this.#members += Math.floor((stop - this.#at) / (wireType === fixed64 ? 8 : 4))
    else {
      for (let at = this.#at; at < stop && this.#members <= this.#limits.members; at++) {
        if (bytes[at]! < 0x80) this.#members++
      }
    }
    return this.#members <= this.#limits.members
  }

  /** Reads a number, such as a tag or a length. Returns -1 if it is cut off. */
  #number(): number {
    let value = 0
    for (let shift = 0; shift < 32 && this.#at < this.#bytes.length; shift += 7) {
      const byte = this.#bytes[this.#at++]!
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return shift === 28 && byte > 0x07 ? -1 : value
    }
    return -1
  }

  #tooMany(): string {
    return `has more than ${this.#limits.members} fields and elements`
  }
}

const shapes = new WeakMap<DescMessage, Shape>()

function shapeOf(desc: DescMessage): Shape {
  const known = shapes.get(desc) ?? new Map(desc.fields.map((field) => [field.number, knownOf(field)]))
  shapes.set(desc, known)
  return known
}

function knownOf(field: DescField): KnownField {
  if (field.fieldKind === 'map') {
    const entry: Shape = new Map([
      [1, describeField(field.mapKey, undefined, false)],
      [2, describeField(field.scalar, field.message, false)],
    ])
    return { wireType: delimited, packable: false, inside: () => entry }
  }
  return describeField(field.scalar, field.message, field.fieldKind === 'list')
}

/** Describes a field. Without a scalar and a message, it is an enum. */
function describeField(scalar: ScalarType | undefined, message: DescMessage | undefined, isList: boolean): KnownField {
  const wireType = message ? delimited : wireTypeOf(scalar ?? ScalarType.INT32)
  return { wireType, packable: isList && wireType !== delimited, inside: message && (() => shapeOf(message)) }
}

function wireTypeOf(scalar: ScalarType): number {
  switch (scalar) {
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return fixed64
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return fixed32
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return delimited
    default:
      return varint
  }
}
