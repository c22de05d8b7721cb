import type { Handlers } from '#app.ts'
import {
  AccessExplanationSchema,
  type AccessService,
  ExplainedBinding_Effect,
  GrantorSchema,
} from '#gen/pinfold/control/iam/v1/access_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import type { Effect } from './explanations.model.ts'
import * as service from './explanations.service.ts'
import { lookupGrantors } from './grantors.service.ts'

const effects = {
  grants: ExplainedBinding_Effect.GRANTS,
  roleLacksIt: ExplainedBinding_Effect.ROLE_LACKS_IT,
  notAccepted: ExplainedBinding_Effect.NOT_ACCEPTED,
  aboveHome: ExplainedBinding_Effect.ABOVE_HOME,
} as const satisfies Record<Effect, ExplainedBinding_Effect>

const toGrantor = messageOf(GrantorSchema)
const toMessage = messageOf(AccessExplanationSchema)

export const access: Handlers<typeof AccessService> = {
  async lookupGrantors(call, { organization }) {
    const grantors = (await lookupGrantors(call, organization)).map(toGrantor)
    return { $typeName: 'pinfold.control.iam.v1.LookupGrantorsResponse', grantors }
  },

  async explainAccess(call, { uid, identityUid, capability }) {
    const explanation = await service.explainAccess(call, { uid, identityUid, capability })
    const bindings = explanation.bindings.map((one) => ({ ...one, effect: effects[one.effect] }))
    const groupRoles = explanation.groupRoles.map((one) => ({ ...one, effect: effects[one.effect] }))
    return toMessage({ ...explanation, bindings, groupRoles })
  },
}
