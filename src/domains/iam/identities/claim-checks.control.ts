import type { Handlers } from '#app.ts'
import type { ClaimChecksService, ClaimConditions } from '#gen/pinfold/control/iam/v1/claim_checks_pb.ts'
import * as service from './claim-checks.service.ts'
import type { ClaimMatch } from './identities.model.ts'

export const claimChecks: Handlers<typeof ClaimChecksService> = {
  async checkClaims(call, { uid, claims, match }) {
    const checks = await service.checkClaims(call, { uid, claims, match: match && fromMessage(match) })
    return {
      $typeName: 'pinfold.control.iam.v1.ClaimChecks',
      matches: checks.every((check) => check.matches),
      checks: checks.map((check) => ({ $typeName: 'pinfold.control.iam.v1.ClaimCheck', ...check })),
    }
  },
}

/** Converts a message to conditions. Empty members are left out, as in an identity. */
function fromMessage({ claims, claimPatterns, ...texts }: ClaimConditions): ClaimMatch {
  const { issuer, issuerPattern, subject, subjectPattern, audience, audiencePattern } = texts
  const conditions = Object.entries({ issuer, issuerPattern, subject, subjectPattern, audience, audiencePattern })
  return { ...Object.fromEntries(conditions.filter(([, text]) => text !== '')), claims, claimPatterns }
}
