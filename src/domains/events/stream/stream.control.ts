import type { Handlers } from '#app.ts'
import type { EventStreamService } from '#gen/pinfold/control/events/v1/stream_pb.ts'
import * as service from './stream.service.ts'

export const eventStream: Handlers<typeof EventStreamService> = {
  async *streamEvents(call, request) {
    for await (const { id, delivery } of service.streamEvents(call, request)) {
      yield {
        $typeName: 'pinfold.control.events.v1.StreamEventsResponse',
        id,
        attributes: delivery?.attributes ?? {},
        data: delivery?.data ?? '',
        token: delivery?.token ?? '',
      }
    }
  },
}
