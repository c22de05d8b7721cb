import { expiryJob } from '#domains/rules/endings.service.ts'
import { riskKind } from './risks.service.ts'

export const expireRisksJob = expiryJob('vulnerabilities.risks', riskKind)
