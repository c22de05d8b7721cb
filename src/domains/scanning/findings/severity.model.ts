// Severity of a vulnerability in a package. A severity that the data source states for the package takes precedence. Otherwise
// the severity follows from CVSS version 4, 3 or 2, in this order.
import { type RecordSeverity, severityLevels } from '../records/records.model.ts'

/** Severity number of version 1 of the API. */
export const unknownSeverity = 0

/**
 * Severity for one advisory entry. `own` has the severities in its record. `others` has the severities in other records of the
 * same vulnerability.
 */
export function severityOf(vendor: number, own: readonly RecordSeverity[], others: readonly RecordSeverity[]): number {
  if (vendor !== unknownSeverity) return vendor
  return levelOf(own) || levelOf(others)
}

const systems = ['CVSS_V4', 'CVSS_V3', 'CVSS_V2'] as const

function levelOf(severities: readonly RecordSeverity[]): number {
  const best = highestScore(severities)
  return best ? levelOfScore(best.score, best.system) : unknownSeverity
}

/** Highest CVSS base score of the newest version of CVSS. Undefined if the record has no valid vector. */
export function highestScore(
  severities: readonly RecordSeverity[],
): { score: number; system: (typeof systems)[number] } | undefined {
  for (const system of systems) {
    const scores = severities.flatMap(({ type, score }) => (type === system && score !== undefined ? [score] : []))
    if (scores.length > 0) return { score: Math.max(...scores), system }
  }
  return undefined
}

/** Score ranges of the CVSS rating scales by FIRST. A score of 0 means no impact. */
function levelOfScore(score: number, system: (typeof systems)[number]): number {
  const { low, medium, high, critical, negligible } = severityLevels
  if (score >= 9 && system !== 'CVSS_V2') return critical
  if (score >= 7) return high
  if (score >= 4) return medium
  return score > 0 ? low : negligible
}

// Severities from the highest to the lowest. An unknown severity can be any severity, so it ranks between low and negligible.
const order = [severityLevels.critical, severityLevels.high, severityLevels.medium, severityLevels.low, 0, 5]

/** The higher of two severities. */
export function worse(one: number, other: number): number {
  return order.indexOf(one) <= order.indexOf(other) ? one : other
}

const names = new Map<number, string>(Object.entries(severityLevels).map(([name, number]) => [number, name]))

/** Name of a severity: `critical`, `high`, `medium`, `low`, `negligible` or `unknown`. */
export function levelName(severity: number): string {
  return names.get(severity) ?? 'unknown'
}

/** Rank for sorting. A higher severity has a larger rank. */
export function severityRank(level: number): number {
  return -order.indexOf(level)
}
