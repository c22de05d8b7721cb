// How bad a vulnerability counts: what the source says for the package, then CVSS of version 4, 3 and 2, in this order.
import { type RecordSeverity, severityLevels } from '../records/records.model.ts'

/** As version 1 counts severities. */
export const unknownSeverity = 0

/** `own` is what the record itself says, `others` what other records of the same vulnerability do. */
export function severityOf(vendor: number, own: readonly RecordSeverity[], others: readonly RecordSeverity[]): number {
  if (vendor !== unknownSeverity) return vendor
  return levelOf(own) || levelOf(others)
}

const systems = ['CVSS_V4', 'CVSS_V3', 'CVSS_V2'] as const

function levelOf(severities: readonly RecordSeverity[]): number {
  for (const system of systems) {
    const scores = severities.flatMap(({ type, score }) => (type === system && score !== undefined ? [score] : []))
    if (scores.length > 0) return levelOfScore(Math.max(...scores), system)
  }
  return unknownSeverity
}

/** The bands of FIRST's rating scales; a score of 0 says that there is nothing to fear. */
function levelOfScore(score: number, system: (typeof systems)[number]): number {
  const { low, medium, high, critical, negligible } = severityLevels
  if (score >= 9 && system !== 'CVSS_V2') return critical
  if (score >= 7) return high
  if (score >= 4) return medium
  return score > 0 ? low : negligible
}

// From the worst; what is unknown may be anything, and counts between low and negligible.
const order = [severityLevels.critical, severityLevels.high, severityLevels.medium, severityLevels.low, 0, 5]

/** The worse of two. */
export function worse(one: number, other: number): number {
  return order.indexOf(one) <= order.indexOf(other) ? one : other
}

const names = new Map<number, string>(Object.entries(severityLevels).map(([name, number]) => [number, name]))

/** A severity in a word: `critical`, `high`, `medium`, `low`, `negligible` or `unknown`. */
export function levelName(severity: number): string {
  return names.get(severity) ?? 'unknown'
}

/** Higher the worse. */
export function severityRank(level: number): number {
  return -order.indexOf(level)
}
