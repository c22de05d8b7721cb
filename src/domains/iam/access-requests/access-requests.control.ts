import type { Handlers } from '#app.ts'
import {
  AccessRequestAnsweredSchema,
  AccessRequestCreatedSchema,
  type AccessRequest as AccessRequestMessage,
  type AccessRequestsService,
} from '#gen/pinfold/control/iam/v1/access_requests_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import {
  type AccessRequest,
  type AnsweredRequest,
  accessRequestFields,
  anAccessRequest,
  anAnsweredRequest,
} from './access-requests.model.ts'
import * as service from './access-requests.service.ts'

const rules = { fields: accessRequestFields, defaultOrder: 'uid' }
const response = 'pinfold.control.iam.v1.ListAccessRequestsResponse'

export const accessRequests: Handlers<typeof AccessRequestsService> = {
  async listAccessRequests(call, request) {
    const { organization } = request
    const query = readList(call, request, rules, { organization })
    const listed = await service.listAccessRequests(call, organization, query)
    return listResponse(response, 'accessRequests', listed, toMessage, request)
  },

  async approveAccessRequest(call, { uid, roleUid }) {
    const roleBindingUid = await service.approveAccessRequest(call, uid, roleUid)
    return { $typeName: 'pinfold.control.iam.v1.ApproveAccessRequestResponse', roleBindingUid }
  },

  async refuseAccessRequest(call, { uid }) {
    await service.refuseAccessRequest(call, uid)
    return empty
  },
}

export const accessRequestEvents: readonly EventBody[] = [
  eventBody(AccessRequestCreatedSchema, anAccessRequest, (request: AccessRequest) => ({
    $typeName: 'pinfold.control.iam.v1.AccessRequestCreated' as const,
    accessRequest: toMessage(request),
  })),
  eventBody(AccessRequestAnsweredSchema, anAnsweredRequest, ({ request, roleUid }: AnsweredRequest) => ({
    $typeName: 'pinfold.control.iam.v1.AccessRequestAnswered' as const,
    accessRequest: toMessage(request),
    approved: roleUid !== '',
    roleUid,
  })),
]

function toMessage({ uid, identityUid, name, email, createTime, askTime }: AccessRequest): AccessRequestMessage {
  return {
    $typeName: 'pinfold.control.iam.v1.AccessRequest',
    uid,
    identityUid,
    name,
    email,
    createTime: timestamp(createTime),
    askTime: timestamp(askTime),
  }
}
