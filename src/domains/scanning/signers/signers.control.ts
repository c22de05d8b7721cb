import type { Handlers } from '#app.ts'
import { SignerExpiredSchema, type VexSigner, VexSignersService } from '#gen/pinfold/control/scanning/v1/signers_pb.ts'
import { invalid } from '#lib/errors.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { exceptionOrders, nameOrder } from '#lib/lists/orders.ts'
import { readPage } from '#lib/lists/paging.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import { anExpiredSigner, aSigner, type Signer } from './signers.model.ts'
import * as service from './signers.service.ts'

const rules = { fields: { ...exceptionOrders, ...nameOrder }, defaultOrder: 'uid' }

export const vexSigners: Handlers<typeof VexSignersService> = {
  async createVexSigner(call, { parent, vexSigner }) {
    if (!vexSigner) throw invalid({ field: 'vex_signer', description: 'is required' })
    const { name, publicKey, reason, expireTime } = vexSigner
    const input = { name, publicKey, reason, expireTime: expireTime ? toIso(expireTime) : '' }
    return toMessage(await service.trustSigner(call, parent, input))
  },

  async revokeVexSigner(call, { uid, reason }) {
    return toMessage(await service.revokeSigner(call, uid, reason))
  },

  async getVexSigner(call, { uid }) {
    return toMessage(await service.getSigner(call, uid))
  },

  async listVexSigners(call, request) {
    const { scopeUid: scope, includeEnded: withEnded } = request
    const page = readPage(call, request, rules, [scope, withEnded])
    const listed = await service.listSigners(call, page, { scope, withEnded })
    const response = 'pinfold.control.scanning.v1.ListVexSignersResponse'
    return listResponse(response, 'vexSigners', listed, toMessage, request)
  },
}

export const signerEvents: readonly EventBody[] = [
  eventBody(VexSignersService.method.createVexSigner, aSigner, toMessage),
  eventBody(VexSignersService.method.revokeVexSigner, aSigner, toMessage),
  eventBody(SignerExpiredSchema, anExpiredSigner, (signer) => ({
    $typeName: 'pinfold.control.scanning.v1.SignerExpired' as const,
    vexSigner: toMessage(signer),
  })),
]

function toMessage(signer: Signer): VexSigner {
  const { uid, name, publicKey, fingerprint, reason, actor, endTime, endActor, endReason } = signer
  return {
    $typeName: 'pinfold.control.scanning.v1.VexSigner',
    ...{ uid, name, publicKey, fingerprint, reason, actor },
    expireTime: timestamp(signer.expireTime),
    state: endTime === '' ? 'LIVE' : endTime === signer.expireTime ? 'EXPIRED' : 'REVOKED',
    ...(endTime === '' ? {} : { endTime: timestamp(endTime) }),
    revokedBy: endActor,
    revokeReason: endReason,
    createTime: timestamp(signer.createTime),
    updateTime: timestamp(signer.endTime || signer.createTime),
  }
}
