// What gRPC server reflection tells: every file of the contract, and the same once more under each further name that its
// packages can be called by.
import { clone, type DescFile, toBinary } from '@bufbuild/protobuf'
import { type DescriptorProto, type FileDescriptorProto, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { ReflectionService } from '@grpc/reflection'
import { file_grpc_health_v1_health } from '#gen/grpc/health/v1/health_pb.ts'
import { vendorTypeName } from '#lib/naming/vendor.ts'
import { previewTypeName } from './grpc-names.ts'

/** Gives a package or a type another name, or leaves it as it is. */
type Rename = (name: string) => string

/** The service that answers for these files; `token` is that of a vendor whose names count too. */
export function createReflection(served: Iterable<DescFile>, token: string | undefined): ReflectionService {
  const files = withImports([...served, file_grpc_health_v1_health])
  const renames: Rename[] = [previewTypeName]
  if (token !== undefined) {
    const vendors: Rename = (name) => vendorTypeName(name, token)
    renames.push(vendors, (name) => vendors(previewTypeName(name)))
  }
  const all = new Map(files.map((file) => [file.name, file]))
  for (const rename of renames) for (const file of aliasesOf(files, rename)) all.set(file.name, file)
  const fileDescriptorProtos = [...all.values()].map((file) => Buffer.from(toBinary(FileDescriptorProtoSchema, file)))
  return new ReflectionService({
    pinfold: { format: 'Protocol Buffer 3 DescriptorProto', type: {}, fileDescriptorProtos },
  })
}

function withImports(served: readonly DescFile[]): FileDescriptorProto[] {
  const files = new Set<DescFile>()
  const add = (file: DescFile): void => {
    if (files.has(file)) return
    files.add(file)
    file.dependencies.forEach(add)
  }
  served.forEach(add)
  return [...files].map(({ proto }) => proto)
}

/** The files whose package gets another name. What they import from the others stays as it is. */
function aliasesOf(files: readonly FileDescriptorProto[], rename: Rename): FileDescriptorProto[] {
  const renamed = files.filter((file) => rename(`${file.package}.`) !== `${file.package}.`)
  const paths = new Map(renamed.map((file) => [file.name, pathUnder(file, rename)]))
  return renamed.map((file) => {
    const alias = clone(FileDescriptorProtoSchema, file)
    alias.name = paths.get(file.name)!
    alias.package = rename(`${file.package}.`).slice(0, -1)
    alias.dependency = file.dependency.map((path) => paths.get(path) ?? path)
    const inside: Rename = (name) => `.${rename(name.slice(1))}`
    for (const message of alias.messageType) renameMessage(message, inside)
    for (const method of alias.service.flatMap((service) => service.method)) {
      method.inputType = inside(method.inputType)
      method.outputType = inside(method.outputType)
    }
    return alias
  })
}

/** No two files may have one path, so the new package is in front of it. */
function pathUnder(file: FileDescriptorProto, rename: Rename): string {
  return `${rename(`${file.package}.`).replaceAll('.', '/')}${file.name}`
}

function renameMessage(message: DescriptorProto, inside: Rename): void {
  for (const field of message.field) if (field.typeName !== '') field.typeName = inside(field.typeName)
  for (const nested of message.nestedType) renameMessage(nested, inside)
}
