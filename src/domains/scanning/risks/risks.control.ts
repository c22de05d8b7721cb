import type { Handlers } from '#app.ts'
import {
  RiskAcceptancesService,
  RiskExpiredSchema,
  type RiskAcceptance as RiskMessage,
} from '#gen/pinfold/control/scanning/v1/risks_pb.ts'
import { invalid } from '#lib/errors.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { exceptionOrders } from '#lib/lists/orders.ts'
import { readPage } from '#lib/lists/paging.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import { anExpiredRisk, aRiskAcceptance, type RiskAcceptance } from './risks.model.ts'
import * as service from './risks.service.ts'

const rules = { fields: exceptionOrders, defaultOrder: 'uid' }

export const riskAcceptances: Handlers<typeof RiskAcceptancesService> = {
  async createRiskAcceptance(call, { parent, riskAcceptance }) {
    if (!riskAcceptance) throw invalid({ field: 'risk_acceptance', description: 'is required' })
    const { vulnerability, digest, package: named, reason, expireTime, statement } = riskAcceptance
    const until = expireTime ? toIso(expireTime) : ''
    const input = { vulnerability, digest, package: named, reason, expireTime: until, statement }
    return toMessage(await service.acceptRisk(call, parent, input))
  },

  async revokeRiskAcceptance(call, { uid, reason }) {
    return toMessage(await service.revokeRisk(call, uid, reason))
  },

  async getRiskAcceptance(call, { uid }) {
    return toMessage(await service.getRisk(call, uid))
  },

  async listRiskAcceptances(call, request) {
    const { scopeUid: scope, includeEnded: withEnded } = request
    const page = readPage(call, request, rules, [scope, withEnded])
    const listed = await service.listRisks(call, page, { scope, withEnded })
    const response = 'pinfold.control.scanning.v1.ListRiskAcceptancesResponse'
    return listResponse(response, 'riskAcceptances', listed, toMessage, request)
  },
}

export const riskEvents: readonly EventBody[] = [
  eventBody(RiskAcceptancesService.method.createRiskAcceptance, aRiskAcceptance, toMessage),
  eventBody(RiskAcceptancesService.method.revokeRiskAcceptance, aRiskAcceptance, toMessage),
  eventBody(RiskExpiredSchema, anExpiredRisk, (risk) => ({
    $typeName: 'pinfold.control.scanning.v1.RiskExpired' as const,
    riskAcceptance: toMessage(risk),
  })),
]

function toMessage(risk: RiskAcceptance): RiskMessage {
  const { uid, vulnerability, digest, reason, actor, endTime, endActor, endReason, statement, stated } = risk
  return {
    $typeName: 'pinfold.control.scanning.v1.RiskAcceptance',
    ...{ uid, vulnerability, digest, package: risk.package, reason, actor, statement, stated },
    expireTime: timestamp(risk.expireTime),
    state: endTime === '' ? 'LIVE' : endTime === risk.expireTime ? 'EXPIRED' : 'REVOKED',
    ...(endTime === '' ? {} : { endTime: timestamp(endTime) }),
    revokedBy: endActor,
    revokeReason: endReason,
    createTime: timestamp(risk.createTime),
    updateTime: timestamp(risk.endTime || risk.createTime),
  }
}
