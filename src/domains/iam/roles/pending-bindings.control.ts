import type { Handlers } from '#app.ts'
import type {
  PendingBinding as PendingBindingMessage,
  PendingBindingsService,
} from '#gen/pinfold/control/iam/v1/pending_bindings_pb.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import * as service from './consent.service.ts'
import { type PendingBinding, pendingBindingFields } from './pending-bindings.model.ts'

const rules = { fields: pendingBindingFields, defaultOrder: 'uid' }

export const pendingBindings: Handlers<typeof PendingBindingsService> = {
  async listPendingBindings(call, request) {
    const listed = await service.listPendingBindings(call, readList(call, request, rules, {}))
    const response = 'pinfold.control.iam.v1.ListPendingBindingsResponse'
    return listResponse(response, 'pendingBindings', listed, toMessage, request)
  },

  async acceptPendingBinding(call, { uid }) {
    const acceptedUids = await service.acceptPendingBinding(call, uid)
    return { $typeName: 'pinfold.control.iam.v1.AcceptPendingBindingResponse', acceptedUids }
  },

  async refusePendingBinding(call, { uid }) {
    await service.refusePendingBinding(call, uid)
    return empty
  },
}

function toMessage({ createTime, ...binding }: PendingBinding): PendingBindingMessage {
  return { $typeName: 'pinfold.control.iam.v1.PendingBinding', ...binding, createTime: timestamp(createTime) }
}
