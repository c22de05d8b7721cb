import { expiryDuty } from '#domains/rules/endings.service.ts'
import { signerKind } from './signers.service.ts'

export const expireSignersDuty = expiryDuty('vulnerabilities.signers', signerKind)
