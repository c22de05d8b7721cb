import type { Ending } from '#domains/rules/rules.model.ts'
import { kindOf } from '#lib/events/event-body.ts'

/** A vulnerability that a member accepts at a scope until a time. */
export type RiskAcceptance = Ending & {
  /** Only in this image, or only in this package; empty for all. */
  digest: string
  package: string
  /** The id under which it is counted. */
  vulnerability: string
  expireTime: string
  /** The adopted statement of somebody else, and what it says; empty if there is none. */
  statement: string
  stated: string
}

export const riskAcceptanceType = 'registry.pinfold.dev/RiskAcceptance'

export const aRiskAcceptance = kindOf<RiskAcceptance>('risk-acceptance')
export const anExpiredRisk = kindOf<RiskAcceptance>('expired-risk')

export const maxDays = 366
/** How many may hold in an organization, and how many there may ever be of one vulnerability at one scope. */
export const mostLive = 5000
export const mostOfOne = 200
