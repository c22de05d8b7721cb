import type { Handlers } from '#app.ts'
import { endFields, endingHandlers, isoOf } from '#domains/rules/rules.control.ts'
import { SignerExpiredSchema, type VexSigner, VexSignersService } from '#gen/pinfold/control/scanning/v1/signers_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { exceptionOrders, nameOrder } from '#lib/lists/orders.ts'
import { type Signer, toExpiredSignerResource, toSignerResource } from './signers.model.ts'
import { signerKind } from './signers.service.ts'

const signers = endingHandlers(signerKind, {
  field: 'vex_signer',
  fromMessage: ({ name, publicKey, reason, expireTime }: VexSigner) => ({
    ...{ name, publicKey, reason, expireTime: isoOf(expireTime) },
  }),
  toMessage,
  response: 'pinfold.control.scanning.v1.ListVexSignersResponse',
  member: 'vexSigners',
  orders: { ...exceptionOrders, ...nameOrder },
})

export const vexSigners: Handlers<typeof VexSignersService> = {
  createVexSigner: (call, { parent, vexSigner }) => signers.create(call, parent, vexSigner),
  revokeVexSigner: signers.end,
  getVexSigner: signers.get,
  listVexSigners: signers.list,
}

export const signerEvents: readonly EventBody[] = [
  eventBody(VexSignersService.method.createVexSigner, toSignerResource, toMessage),
  eventBody(VexSignersService.method.revokeVexSigner, toSignerResource, toMessage),
  eventBody(SignerExpiredSchema, toExpiredSignerResource, (signer) => ({
    $typeName: 'pinfold.control.scanning.v1.SignerExpired' as const,
    vexSigner: toMessage(signer),
  })),
]

function toMessage(signer: Signer): VexSigner {
  const { uid, name, publicKey, fingerprint, reason, actor } = signer
  return {
    $typeName: 'pinfold.control.scanning.v1.VexSigner',
    ...{ uid, name, publicKey, fingerprint, reason, actor },
    ...endFields(signer),
  }
}
