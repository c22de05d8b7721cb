import type { Domain } from '#domain.ts'
import { PingService as PingServiceV1 } from '#gen/pinfold/ping/v1/ping_pb.ts'
import { PingService } from '#gen/pinfold/ping/v2/ping_pb.ts'
import { pingV1 } from './ping.v1.ts'
import { ping as pingV2 } from './ping.v2.ts'

export const ping: Domain = {
  services: [
    { desc: PingService, handlers: pingV2 },
    { desc: PingServiceV1, handlers: pingV1 },
  ],
  eventBodies: [],
  resources: [],
  jobs: [],
}
