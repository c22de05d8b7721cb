// Inputs for the gRPC services health and reflection, which come from a library. Both need no authentication.
import { reflectionMethods } from '#api/naming/reflection.ts'
import { Health } from '#gen/grpc/health/v1/health_pb.ts'
import type { Input } from './input.ts'
import type { Wire } from './wire.ts'

const methods = [
  ...Health.methods.map(({ name, methodKind }) => ({
    path: `${Health.typeName}/${name}`,
    isStream: methodKind !== 'unary',
  })),
  ...reflectionMethods.map(({ service, name }) => ({ path: `${service}/${name}`, isStream: true })),
]

export const libraryTargets: readonly string[] = methods.map(({ path }) => `grpc ${path}`)

const bytes = 64 * 1024 - 16
const large = 4 * 1024 * 1024 - 16

/** A message with one text in the field of this number. */
function text(number: number, length: number): Buffer {
  const size = Buffer.from([(length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, length >> 14])
  return Buffer.concat([Buffer.from([(number << 3) | 2]), size, Buffer.alloc(length, 'a')])
}

const messages: Record<string, () => Buffer> = {
  nothing: () => Buffer.alloc(0),
  'unknown fields': () => Buffer.alloc(bytes, Buffer.from([0x78, 0])),
  'unknown fields, too many': () => Buffer.alloc(large, Buffer.from([0x78, 0])),
  // Field 1 names a service or a host, fields 3 and 4 a file and a symbol, and 7 asks for all services.
  ...Object.fromEntries(
    [1, 3, 4, 7].map((number) => [`a long text in field ${number}`, () => text(number, bytes - 8)]),
  ),
  'a list of services': () => text(7, 16_500),
}

export function libraryInputs(wire: Wire): Input[] {
  return methods.flatMap(({ path, isStream }) =>
    Object.entries(messages).flatMap(([shape, make]) =>
      [true, false].map(
        (isCompressed): Input => ({
          ...{ target: `grpc ${path}`, caller: 'nobody', shape: isCompressed ? `${shape}, compressed` : shape },
          isSpecial: isCompressed && shape.startsWith('unknown'),
          prepare: () => {
            const message = make()
            return () => wire.grpc({ path: `/${path}`, token: undefined, message, isCompressed, isStream })
          },
        }),
      ),
    ),
  )
}
