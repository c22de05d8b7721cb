import { expiryJob } from '#domains/rules/endings.service.ts'
import { signerKind } from './signers.service.ts'

export const expireSignersJob = expiryJob('vulnerabilities.signers', signerKind)
