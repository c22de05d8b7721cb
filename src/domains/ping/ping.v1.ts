import type { Handlers } from '#app.ts'
import type { PingService } from '#gen/pinfold/ping/v1/ping_pb.ts'

export const pingV1: Handlers<typeof PingService> = {
  async ping() {
    return { $typeName: 'pinfold.platform.ping.Response', response: 'pong' }
  },
}
