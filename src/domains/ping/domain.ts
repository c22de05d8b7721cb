import type { Service } from '#app.ts'
import { PingService as PingServiceV1 } from '#gen/pinfold/ping/v1/ping_pb.ts'
import { PingService } from '#gen/pinfold/ping/v2/ping_pb.ts'
import { pingV1 } from './ping.v1.ts'
import { ping } from './ping.v2.ts'

export const services: readonly Service[] = [
  { desc: PingService, handlers: ping },
  { desc: PingServiceV1, handlers: pingV1 },
]
