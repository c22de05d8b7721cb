// Facts of findings as text, and lists of findings as CSV and JSON.
import type { Finding } from '../../data/types.ts'

/** Severities from the highest to the lowest. */
export const severities = ['critical', 'high', 'medium', 'low', 'negligible', 'unknown']

/** Ids of the vulnerabilities. Without one, the id of the record. */
export const idsOf = ({ vulnerabilities, record }: Finding): readonly string[] =>
  vulnerabilities.length > 0 ? vulnerabilities : [record]

export const fixedIn = ({ fixedVersions }: Finding): string => fixedVersions.join(', ')

export function stateOf({ suppressedBy, acceptedBy }: Finding): 'AFFECTED' | 'SUPPRESSED' | 'ACCEPTED' {
  return suppressedBy ? 'SUPPRESSED' : acceptedBy.length > 0 ? 'ACCEPTED' : 'AFFECTED'
}

/** Name and version in a package URL such as `pkg:apk/alpine/zlib@1.3.1-r0?arch=x86_64`. */
export function packageOf(purl: string): { name: string; version: string } {
  const [, path = purl, version = ''] = /^pkg:[^/]+\/([^@?#]+)(?:@([^?#]*))?/.exec(purl) ?? []
  return { name: decoded(path.slice(path.lastIndexOf('/') + 1)), version: decoded(version) }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const cells = (one: Finding): readonly (string | number)[] => {
  const { name, version } = packageOf(one.purl)
  return [
    ...[idsOf(one).join(' '), one.title, one.severity, one.score ?? '', one.likelihood?.epss ?? ''],
    ...[one.exploited ? 'yes' : 'no', name, version, fixedIn(one), stateOf(one).toLowerCase(), one.purl, one.source],
  ]
}

const heads =
  'vulnerability,title,severity,score,epss,known_exploited,package,installed,fixed_in,state,purl,data_source'

/** CSV with a header. Spreadsheets do not run cells as formulas. */
export function toCsv(findings: readonly Finding[]): string {
  const rows = findings.map((one) => cells(one).map(quoted).join(','))
  return `${[heads, ...rows].join('\r\n')}\r\n`
}

function quoted(value: string | number): string {
  const text = String(value)
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

export const toJson = (findings: readonly Finding[]): string => `${JSON.stringify(findings, null, 2)}\n`
