import type { Handlers } from '#app.ts'
import {
  AccessExplanationSchema,
  type AccessService,
  ExplainedBinding_Effect,
} from '#gen/pinfold/control/iam/v1/access_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import type { Effect } from './explanations.model.ts'
import * as service from './explanations.service.ts'

const effects = {
  grants: ExplainedBinding_Effect.GRANTS,
  roleLacksIt: ExplainedBinding_Effect.ROLE_LACKS_IT,
  notAccepted: ExplainedBinding_Effect.NOT_ACCEPTED,
  aboveHome: ExplainedBinding_Effect.ABOVE_HOME,
} as const satisfies Record<Effect, ExplainedBinding_Effect>

const toMessage = messageOf(AccessExplanationSchema)

export const access: Handlers<typeof AccessService> = {
  async explainAccess(call, { uid, identityUid, capability }) {
    const explanation = await service.explainAccess(call, { uid, identityUid, capability })
    const bindings = explanation.bindings.map((one) => ({ ...one, effect: effects[one.effect] }))
    const groupRoles = explanation.groupRoles.map((one) => ({ ...one, effect: effects[one.effect] }))
    return toMessage({ ...explanation, bindings, groupRoles })
  },
}
