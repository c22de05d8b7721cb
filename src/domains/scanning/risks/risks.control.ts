import type { Handlers } from '#app.ts'
import { endFields, endingHandlers, isoOf } from '#domains/rules/rules.control.ts'
import {
  RiskAcceptancesService,
  RiskExpiredSchema,
  type RiskAcceptance as RiskMessage,
} from '#gen/pinfold/control/scanning/v1/risks_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { type RiskAcceptance, toExpiredRiskResource, toRiskAcceptanceResource } from './risks.model.ts'
import { type NewRisk, riskKind } from './risks.service.ts'

const risks = endingHandlers(riskKind, {
  field: 'risk_acceptance',
  fromMessage: ({ vulnerability, digest, package: named, reason, expireTime, statement }: RiskMessage): NewRisk => ({
    ...{ vulnerability, digest, package: named, reason, expireTime: isoOf(expireTime), statement },
  }),
  toMessage,
  response: 'pinfold.control.scanning.v1.ListRiskAcceptancesResponse',
  member: 'riskAcceptances',
})

export const riskAcceptances: Handlers<typeof RiskAcceptancesService> = {
  createRiskAcceptance: (call, { parent, riskAcceptance }) => risks.create(call, parent, riskAcceptance),
  revokeRiskAcceptance: risks.end,
  getRiskAcceptance: risks.get,
  listRiskAcceptances: risks.list,
}

export const riskEvents: readonly EventBody[] = [
  eventBody(RiskAcceptancesService.method.createRiskAcceptance, toRiskAcceptanceResource, toMessage),
  eventBody(RiskAcceptancesService.method.revokeRiskAcceptance, toRiskAcceptanceResource, toMessage),
  eventBody(RiskExpiredSchema, toExpiredRiskResource, (risk) => ({
    $typeName: 'pinfold.control.scanning.v1.RiskExpired' as const,
    riskAcceptance: toMessage(risk),
  })),
]

function toMessage(risk: RiskAcceptance): RiskMessage {
  const { uid, vulnerability, digest, reason, actor, statement, stated } = risk
  return {
    $typeName: 'pinfold.control.scanning.v1.RiskAcceptance',
    ...{ uid, vulnerability, digest, package: risk.package, reason, actor, statement, stated },
    ...endFields(risk),
  }
}
