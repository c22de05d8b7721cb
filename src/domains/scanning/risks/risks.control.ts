import type { Handlers } from '#app.ts'
import {
  RiskAcceptancesService,
  RiskExpiredSchema,
  type RiskAcceptance as RiskMessage,
} from '#gen/pinfold/control/scanning/v1/risks_pb.ts'
import { invalid } from '#lib/errors.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { readPage } from '#lib/lists/paging.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import { anExpiredRisk, aRiskAcceptance, type RiskAcceptance, riskFields } from './risks.model.ts'
import * as service from './risks.service.ts'

const rules = { fields: riskFields, defaultOrder: 'uid' }

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

  async listRiskAcceptances(call, { scopeUid, includeEnded, pageSize, pageToken }) {
    const page = readPage(call, { pageSize, pageToken, orderBy: '', skip: 0 }, rules, [scopeUid, includeEnded])
    const { items, next } = await service.listRisks(call, page, { scope: scopeUid, withEnded: includeEnded })
    return {
      $typeName: 'pinfold.control.scanning.v1.ListRiskAcceptancesResponse',
      riskAcceptances: items.map(toMessage),
      nextPageToken: next,
    }
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
  }
}
