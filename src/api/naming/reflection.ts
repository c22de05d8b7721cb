// Data of gRPC server reflection: each file of the contract, and copies with the preview's and the vendor's package names.
import { createRequire } from 'node:module'
import { clone, type DescFile, toBinary } from '@bufbuild/protobuf'
import {
  type DescriptorProto,
  type FieldDescriptorProto,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'
import type { ReflectionService } from '@grpc/reflection'
import { file_google_rpc_error_details } from '#gen/google/rpc/error_details_pb.ts'
import { file_grpc_health_v1_health } from '#gen/grpc/health/v1/health_pb.ts'
import { file_pinfold_iam_v1_terms_errors } from '#gen/pinfold/iam/v1/terms_errors_pb.ts'
import { vendorField, vendorTypeName } from '#lib/naming/vendor.ts'
import { previewTypeName } from './grpc-names.ts'
import { type AddingService, addLazily } from './lazy-service.ts'

/** Loads the library at the first request, since loading takes long. */
const load = createRequire(import.meta.url)

/** Files that clients need, although none of our methods refers to them: the health service of a library, and error details. */
const others = [file_grpc_health_v1_health, file_google_rpc_error_details, file_pinfold_iam_v1_terms_errors]

/** Functions that rename types and members. They return other names unchanged. */
type Rename = { type: (name: string) => string; member: (name: string) => string }

/**
 * Adds reflection for these files. With `token`, also includes the names of this vendor. The data is built at the first request,
 * since that takes longer than the rest of the start.
 */
export function addReflection(server: AddingService, served: Iterable<DescFile>, token?: string): void {
  addLazily(server, reflectionMethods, () => reflectionOf(served, token))
}

/** Methods of the reflection service, in both of its versions. */
export const reflectionMethods = [
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
].map((service) => ({
  ...{ service, name: 'ServerReflectionInfo', requestStream: true, responseStream: true },
}))

export const reflectionPaths: readonly string[] = reflectionMethods.map(({ service, name }) => `/${service}/${name}`)

function reflectionOf(served: Iterable<DescFile>, token: string | undefined): ReflectionService {
  const files = withImports([...served, ...others])
  const renames: Rename[] = [{ type: previewTypeName, member: (name) => name }]
  if (token !== undefined) {
    const member: Rename['member'] = (name) => vendorField(name, token)
    const type: Rename['type'] = (name) => vendorTypeName(name, token)
    renames.push({ type, member }, { type: (name) => type(previewTypeName(name)), member })
  }
  const all = new Map(files.map((file) => [file.name, file]))
  for (const rename of renames) for (const file of aliasesOf(files, rename)) all.set(file.name, file)
  const fileDescriptorProtos = [...all.values()].map((file) => Buffer.from(toBinary(FileDescriptorProtoSchema, file)))
  const { ReflectionService: Service } = load('@grpc/reflection') as typeof import('@grpc/reflection')
  return new Service({
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

/** Copies of the files whose package is renamed. Imports of other files stay the same. */
function aliasesOf(files: readonly FileDescriptorProto[], rename: Rename): FileDescriptorProto[] {
  const renamed = files.filter((file) => rename.type(`${file.package}.`) !== `${file.package}.`)
  const paths = new Map(renamed.map((file) => [file.name, pathUnder(file, rename)]))
  return renamed.map((file) => {
    const alias = clone(FileDescriptorProtoSchema, file)
    alias.name = paths.get(file.name)!
    alias.package = rename.type(`${file.package}.`).slice(0, -1)
    alias.dependency = file.dependency.map((path) => paths.get(path) ?? path)
    const inside: Rename = { ...rename, type: (name) => `.${rename.type(name.slice(1))}` }
    for (const field of alias.extension) renameField(field, inside)
    for (const message of alias.messageType) renameMessage(message, inside)
    for (const method of alias.service.flatMap((service) => service.method)) {
      method.inputType = inside.type(method.inputType)
      method.outputType = inside.type(method.outputType)
    }
    return alias
  })
}

/** Path of a copy. It starts with the new package, since paths must be unique. */
function pathUnder(file: FileDescriptorProto, rename: Rename): string {
  return `${rename.type(`${file.package}.`).replaceAll('.', '/')}${file.name}`
}

function renameMessage(message: DescriptorProto, inside: Rename): void {
  for (const field of message.field) renameField(field, inside)
  for (const nested of message.nestedType) renameMessage(nested, inside)
}

function renameField(field: FieldDescriptorProto, inside: Rename): void {
  if (field.typeName !== '') field.typeName = inside.type(field.typeName)
  field.name = inside.member(field.name)
  field.jsonName = inside.member(field.jsonName)
}
