import type { Handlers } from '#app.ts'
import {
  type AccessService,
  ExplainedBinding_Effect,
  type ExplainedBinding as ExplainedBindingMessage,
} from '#gen/pinfold/control/iam/v1/access_pb.ts'
import type { Effect, ExplainedBinding } from './explanations.model.ts'
import * as service from './explanations.service.ts'

const effects = {
  grants: ExplainedBinding_Effect.GRANTS,
  roleLacksIt: ExplainedBinding_Effect.ROLE_LACKS_IT,
  notAccepted: ExplainedBinding_Effect.NOT_ACCEPTED,
  aboveHome: ExplainedBinding_Effect.ABOVE_HOME,
} as const satisfies Record<Effect, ExplainedBinding_Effect>

export const access: Handlers<typeof AccessService> = {
  async explainAccess(call, { uid, identityUid, capability }) {
    const { allowed, bindings, sufficientRoles, grantors } = await service.explainAccess(call, {
      uid,
      identityUid,
      capability,
    })
    return {
      $typeName: 'pinfold.control.iam.v1.AccessExplanation',
      allowed,
      bindings: bindings.map(toMessage),
      sufficientRoles: sufficientRoles.map((role) => ({
        $typeName: 'pinfold.control.iam.v1.SufficientRole',
        ...role,
      })),
      grantors: grantors.map((grantor) => ({ $typeName: 'pinfold.control.iam.v1.AccessGrantor', ...grantor })),
    }
  },
}

function toMessage(binding: ExplainedBinding): ExplainedBindingMessage {
  return { $typeName: 'pinfold.control.iam.v1.ExplainedBinding', ...binding, effect: effects[binding.effect] }
}
