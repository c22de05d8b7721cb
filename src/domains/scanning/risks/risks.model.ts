import type { Ending } from '#domains/rules/rules.model.ts'
import { kindOf } from '#lib/events/event-body.ts'

/** A risk that a member accepts in a scope until a time. */
export type RiskAcceptance = Ending & {
  /** The acceptance applies only to this image or this package. Empty for all images or packages. */
  digest: string
  package: string
  /** ID under which reports count the vulnerability. */
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
 * Limits on acceptances. `mostLive`: acceptances in force in an organization. `mostOfOne`: present and former acceptances of one
 * vulnerability in one scope.
 */
export const mostLive = 5000
export const mostOfOne = 200
