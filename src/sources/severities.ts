import calculator from 'ae-cvss-calculator'
import type { RecordSeverity, SeverityLevel } from '#domains/scanning/records/records.model.ts'

const longestVector = 512

/** Score of a CVSS vector. Undefined if the vector is invalid. */
export function scoreOf(type: RecordSeverity['type'], vector: string): number | undefined {
  if (vector.length > longestVector) return undefined
  const version = type === 'CVSS_V4' ? /^CVSS:4\.0\// : type === 'CVSS_V3' ? /^CVSS:3\.[01]\// : /^(?:\(?AV:)/
  if (!version.test(vector)) return undefined
  try {
    const score = calculator.fromVector(vector)?.calculateScores().base
    return typeof score === 'number' && score >= 0 && score <= 10 ? score : undefined
  } catch {
    return undefined
  }
}

export function severityOf(source: string, type: RecordSeverity['type'], vector: string): RecordSeverity {
  const score = scoreOf(type, vector)
  return score === undefined ? { source, type, vector } : { source, type, vector, score }
}

const words: Readonly<Record<string, SeverityLevel>> = {
  negligible: 'negligible',
  unimportant: 'negligible',
  low: 'low',
  medium: 'medium',
  moderate: 'medium',
  high: 'high',
  important: 'high',
  critical: 'critical',
}

/** Severity level for a word in a data source. Empty if the word names no level. */
export function levelOf(word: unknown): SeverityLevel | '' {
  const key = typeof word === 'string' ? word.toLowerCase().replace(/\*{1,9}$/, '') : ''
  return Object.hasOwn(words, key) ? words[key]! : ''
}
