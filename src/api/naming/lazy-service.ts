// gRPC services of libraries that load slowly. A library is loaded at the first call of its service, since most servers never
// need it.
import type { MethodDefinition, Server, ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js'

export type AddingService = Pick<Server, 'addService'>
/** Object of a library that adds its service to a gRPC server. */
export type Addable = { addToServer(server: Server): void }
export type LazyMethod = { service: string; name: string; requestStream: boolean; responseStream: boolean }

type Definition = MethodDefinition<unknown, unknown>
type AddedMethod = { definition: Definition; handler: (...call: unknown[]) => void }

/** Adds methods to a server. At the first call of one of them, `open` loads the library. */
export function addLazily(server: AddingService, methods: readonly LazyMethod[], open: () => Addable): void {
  let known: Map<string, AddedMethod> | undefined
  for (const { service, name, requestStream, responseStream } of methods) {
    const path = `/${service}/${name}`
    const own = (): AddedMethod => {
      known ??= addedBy(open())
      return known.get(path)!
    }
    const definition: Definition = {
      ...{ path, requestStream, responseStream },
      requestSerialize: (message) => own().definition.requestSerialize(message),
      requestDeserialize: (bytes) => own().definition.requestDeserialize(bytes),
      responseSerialize: (message) => own().definition.responseSerialize(message),
      responseDeserialize: (bytes) => own().definition.responseDeserialize(bytes),
    }
    const handler = (...call: unknown[]): void => own().handler(...call)
    server.addService({ [name]: definition } as ServiceDefinition, { [name]: handler } as UntypedServiceImplementation)
  }
}

/** Methods that the library adds to a server, by path. */
function addedBy(library: Addable): Map<string, AddedMethod> {
  const methods = new Map<string, AddedMethod>()
  const addService: Server['addService'] = (service, handlers) => {
    for (const [name, definition] of Object.entries(service)) {
      const handler = handlers[name] ?? handlers[definition.originalName ?? '']
      methods.set(definition.path, { definition, handler: handler as AddedMethod['handler'] })
    }
  }
  library.addToServer({ addService } as Server)
  return methods
}
