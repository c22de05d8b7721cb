import type { Call, Handlers } from '#app.ts'
import { RefusalSchema, RefusalsService } from '#gen/pinfold/control/events/v1/refusals_pb.ts'
import { listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { refusalFields } from './refusals.model.ts'
import * as service from './refusals.service.ts'

const toRefusal = messageOf(RefusalSchema)

export const refusals: Handlers<typeof RefusalsService> = {
  listRefusals: listing(
    RefusalsService.method.listRefusals,
    { fields: refusalFields, defaultOrder: 'last_time desc' },
    ({ group }) => group,
    (call: Call, { page, filter: group }) => service.listRefusals(call, group, page),
    (refusal) => toRefusal({ ...refusal, caller: refusal.caller || 'anonymous' }),
  ),
}
