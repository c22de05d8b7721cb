import { kindOf } from '#lib/events/event-body.ts'

/** That somebody lives with a vulnerability in a place until a day. It never changes but to end. */
export type RiskAcceptance = {
  uid: string
  /** A group, for all below it, or a repo. */
  scopeUid: string
  /** Only in this image, or only in this package; empty for all. */
  digest: string
  package: string
  /** The id that it is counted under. */
  vulnerability: string
  reason: string
  actor: string
  createTime: string
  expireTime: string
  /** Empty while it holds. `endActor` is empty where it has ended by itself. */
  endTime: string
  endActor: string
  endReason: string
  /** The statement of somebody else that was adopted, and what it says; empty where none was. */
  statement: string
  stated: string
}

export const riskAcceptanceType = 'registry.pinfold.dev/RiskAcceptance'

export const aRiskAcceptance = kindOf<RiskAcceptance>('risk-acceptance')
export const anExpiredRisk = kindOf<RiskAcceptance>('expired-risk')

export const maxReason = 2000
export const maxDays = 366
/** How many may hold in an organisation, and how many there may ever be of one vulnerability in one place. */
export const mostLive = 5000
export const mostOfOne = 200
