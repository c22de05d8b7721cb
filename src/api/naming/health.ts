// Health service of gRPC (grpc.health.v1). It has one status for the whole server, not for single services.
import { createRequire } from 'node:module'
import type { HealthImplementation } from 'grpc-health-check'
import { Health as service } from '#gen/grpc/health/v1/health_pb.ts'
import { type AddingService, addLazily } from './lazy-service.ts'

export type Health = { stop(): void }

export const healthPaths: ReadonlySet<string> = new Set(
  service.methods.map(({ name }) => `/${service.typeName}/${name}`),
)

const load = createRequire(import.meta.url)

/** Adds the health service. Its status is SERVING until `stop` is called, which also notifies watchers. */
export function addHealth(server: AddingService): Health {
  let status: 'SERVING' | 'NOT_SERVING' = 'SERVING'
  let health: HealthImplementation | undefined
  const methods = service.methods.map(({ name, methodKind }) => ({
    ...{ service: service.typeName, name, requestStream: false, responseStream: methodKind === 'server_streaming' },
  }))
  addLazily(server, methods, () => {
    const library = load('grpc-health-check') as typeof import('grpc-health-check')
    health = new library.HealthImplementation({ '': status })
    return health
  })
  return {
    stop() {
      status = 'NOT_SERVING'
      health?.setStatus('', status)
    },
  }
}
