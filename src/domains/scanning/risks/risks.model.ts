import type { Ending } from '#domains/rules/rules.model.ts'
import { kindOf } from '#lib/events/event-body.ts'

/** A vulnerability that a member accepts at a scope until a time. */
export type RiskAcceptance = Ending & {
  /** Limits the acceptance to this image or this package. Empty for all. */
  digest: string
  package: string
  /** ID under which the vulnerability is counted. */
  vulnerability: string
  expireTime: string
  /** The adopted VEX statement and its text. Empty if there is none. */
  statement: string
  stated: string
}

export const riskAcceptanceType = 'registry.pinfold.dev/RiskAcceptance'

export const toRiskAcceptanceResource = kindOf<RiskAcceptance>('risk-acceptance')
export const toExpiredRiskResource = kindOf<RiskAcceptance>('expired-risk')

export const maxDays = 366
/**
 * Limits on the acceptances in force in an organization, and on all present and former ones of one vulnerability at one scope.
 */
export const mostLive = 5000
export const mostOfOne = 200
