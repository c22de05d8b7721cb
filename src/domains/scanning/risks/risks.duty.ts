import { expiryDuty } from '#domains/rules/endings.service.ts'
import { riskKind } from './risks.service.ts'

export const expireRisksDuty = expiryDuty('vulnerabilities.risks', riskKind)
