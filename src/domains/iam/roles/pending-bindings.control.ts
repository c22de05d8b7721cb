import type { Handlers } from '#app.ts'
import { PendingBindingSchema, PendingBindingsService } from '#gen/pinfold/control/iam/v1/pending_bindings_pb.ts'
import { deleting, listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import * as service from './consent.service.ts'
import { pendingBindingFields } from './pending-bindings.model.ts'

const { method } = PendingBindingsService
const rules = { fields: pendingBindingFields, defaultOrder: 'uid' }
const toMessage = messageOf(PendingBindingSchema)

export const pendingBindings: Handlers<typeof PendingBindingsService> = {
  listPendingBindings: listing(method.listPendingBindings, rules, () => ({}), service.listPendingBindings, toMessage),
  refusePendingBinding: deleting('uid', service.refusePendingBinding),

  async acceptPendingBinding(call, { uid }) {
    const acceptedUids = await service.acceptPendingBinding(call, uid)
    return { $typeName: 'pinfold.control.iam.v1.AcceptPendingBindingResponse', acceptedUids }
  },
}
