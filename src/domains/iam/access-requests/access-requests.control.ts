import type { Call, Handlers } from '#app.ts'
import {
  AccessRequestAnsweredSchema,
  AccessRequestCreatedSchema,
  AccessRequestSchema,
  AccessRequestsService,
} from '#gen/pinfold/control/iam/v1/access_requests_pb.ts'
import { deleting, listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { accessRequestFields, toAccessRequestResource, toAnsweredRequestResource } from './access-requests.model.ts'
import * as service from './access-requests.service.ts'

const { method } = AccessRequestsService
const rules = { fields: accessRequestFields, defaultOrder: 'uid' }
const toMessage = messageOf(AccessRequestSchema)
const toCreated = messageOf(AccessRequestCreatedSchema)
const toAnswered = messageOf(AccessRequestAnsweredSchema)

export const accessRequests: Handlers<typeof AccessRequestsService> = {
  listAccessRequests: listing(
    method.listAccessRequests,
    rules,
    ({ organization }) => ({ organization }),
    (call: Call, query) => service.listAccessRequests(call, query.filter.organization, query),
    toMessage,
  ),

  async approveAccessRequest(call, { uid, roleUid }) {
    const roleBindingUid = await service.approveAccessRequest(call, uid, roleUid)
    return { $typeName: 'pinfold.control.iam.v1.ApproveAccessRequestResponse', roleBindingUid }
  },

  refuseAccessRequest: deleting('uid', service.refuseAccessRequest),
}

export const accessRequestEvents: readonly EventBody[] = [
  eventBody(AccessRequestCreatedSchema, toAccessRequestResource, (request) => {
    return toCreated({ accessRequest: toMessage(request) })
  }),
  eventBody(AccessRequestAnsweredSchema, toAnsweredRequestResource, ({ request, roleUid }) => {
    return toAnswered({ accessRequest: toMessage(request), approved: roleUid !== '', roleUid })
  }),
]
