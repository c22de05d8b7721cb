// Client of gRPC server reflection, which reads the messages as bytes.
import { fromBinary } from '@bufbuild/protobuf'
import { BinaryReader } from '@bufbuild/protobuf/wire'
import { type FileDescriptorProto, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import grpc from '@grpc/grpc-js'

/** Length-delimited fields of a message, by number. */
function fieldsOf(bytes: Uint8Array): Map<number, Uint8Array[]> {
  const fields = new Map<number, Uint8Array[]>()
  const reader = new BinaryReader(bytes)
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag()
    if (type === 2) fields.set(number, [...(fields.get(number) ?? []), reader.bytes()])
    else reader.skip(type)
  }
  return fields
}

/** Sends one ServerReflectionRequest, and returns the fields of the answer. */
function ask(port: number, version: string, request: number[]): Promise<Map<number, Uint8Array[]>> {
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure())
  const same = (bytes: Buffer) => bytes
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`
  return new Promise<Map<number, Uint8Array[]>>((resolve, reject) => {
    const stream = client.makeBidiStreamRequest<Buffer, Buffer>(path, same, same, new grpc.Metadata())
    stream.on('data', (bytes: Buffer) => resolve(fieldsOf(bytes)))
    stream.on('error', reject)
    stream.end(Buffer.from(request))
  }).finally(() => client.close())
}

export function reflectionOf(port: number, version = 'v1') {
  return {
    async services(): Promise<string[]> {
      const listed = fieldsOf((await ask(port, version, [0x3a, 0])).get(6)![0]!)
      return listed.get(1)!.map((bytes) => Buffer.from(fieldsOf(bytes).get(1)![0]!).toString())
    },
    /** All files that the description of a symbol needs, imported files first. */
    async files(symbol: string): Promise<FileDescriptorProto[]> {
      const known = new Map<string, FileDescriptorProto>()
      const fetch = async (field: number, name: string): Promise<FileDescriptorProto> => {
        const described = await ask(port, version, [field, name.length, ...Buffer.from(name)])
        const [found] = described.get(4) ?? []
        if (!found) throw new Error(`${name} is not known`)
        const files = fieldsOf(found)
          .get(1)!
          .map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes))
        for (const file of files) known.set(file.name, file)
        return files[0]!
      }
      const sorted = new Set<FileDescriptorProto>()
      const add = async (file: FileDescriptorProto): Promise<void> => {
        if (sorted.has(file)) return
        for (const path of file.dependency) await add(known.get(path) ?? (await fetch(0x1a, path)))
        sorted.add(file)
      }
      await add(await fetch(0x22, symbol))
      return [...sorted]
    },
  }
}
