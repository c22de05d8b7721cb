import type { Handlers } from '#app.ts'
import type { PingService } from '#gen/pinfold/ping/v2/ping_pb.ts'

export const ping: Handlers<typeof PingService> = {
  async ping() {
    return { $typeName: 'pinfold.platform.ping.v2.PingResponse', response: 'pong' }
  },
}
