import type { Handlers } from '#app.ts'
import type { Refusal as RefusalMessage, RefusalsService } from '#gen/pinfold/control/events/v1/refusals_pb.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { type Refusal, refusalFields } from './refusals.model.ts'
import * as service from './refusals.service.ts'

const rules = { fields: refusalFields, defaultOrder: 'last_time desc' }

export const refusals: Handlers<typeof RefusalsService> = {
  async listRefusals(call, request) {
    const { page } = readList(call, request, rules, request.group)
    const listed = await service.listRefusals(call, request.group, page)
    return listResponse('pinfold.control.events.v1.ListRefusalsResponse', 'refusals', listed, toMessage, request)
  },
}

function toMessage({ place, caller, count, lastTime, ...refusal }: Refusal): RefusalMessage {
  const { repository, reference, action, remoteAddress, code, reason } = refusal
  return {
    $typeName: 'pinfold.control.events.v1.Refusal',
    group: place,
    repository,
    reference,
    action,
    caller: caller === '' ? 'anonymous' : caller,
    remoteAddress,
    code,
    reason,
    count: BigInt(count),
    lastTime: timestamp(lastTime),
  }
}
