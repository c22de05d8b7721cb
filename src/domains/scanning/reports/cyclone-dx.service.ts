// Writes a report as a CycloneDX document, https://cyclonedx.org/docs/1.6/json. Two documents of the same report are equal byte
// by byte.
import { hash } from 'node:crypto'
import { fixStates, type Gap, type ImageReport, type ReportedVulnerability } from '../image-findings/reports.model.ts'
import { severityLevels } from '../records/records.model.ts'

/** Names of severities in CycloneDX. */
export const severityNames: ReadonlyMap<number, string> = new Map<number, string>([
  [severityLevels.critical, 'critical'],
  [severityLevels.high, 'high'],
  [severityLevels.medium, 'medium'],
  [severityLevels.low, 'low'],
  [severityLevels.negligible, 'info'],
])

/** `tool` is the program that made the report. */
export function toCycloneDx(report: ImageReport, tool: { name: string; version: string }): string {
  const { digest, createTime, vulnerabilities, gaps } = report
  const packages = new Map(vulnerabilities.flatMap((one) => one.packages.map((found) => [found.purl, found] as const)))
  const components = [...packages.values()]
    .sort((one, other) => (one.purl < other.purl ? -1 : 1))
    .map(({ purl, name, version }) => ({ type: 'library', 'bom-ref': purl, name, version, purl }))
  return JSON.stringify({
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(`${digest} ${createTime}`)}`,
    version: 1,
    metadata: {
      timestamp: createTime,
      tools: { components: [{ type: 'application', ...tool }] },
      component: { type: 'container', 'bom-ref': digest, name: digest },
      ...(gaps.length === 0 ? {} : { properties: gaps.map(property) }),
    },
    components,
    vulnerabilities: vulnerabilities.map(vulnerability),
  })
}

/** Property for a coverage gap, because the image can have more vulnerabilities than the document lists. */
const property = ({ reason, subject, message }: Gap) => ({
  name: 'coverage gap',
  value: [reason, subject, message].filter((part) => part !== '').join(' '),
})

function vulnerability({
  id,
  aliases,
  summary,
  details,
  severity,
  cvss,
  fix,
  references,
  packages,
  records,
}: ReportedVulnerability) {
  return {
    'bom-ref': id,
    id,
    references: aliases.map((alias) => ({ id: alias, source: { name: alias.split('-')[0] } })),
    ratings: [
      { severity: severityNames.get(severity) ?? 'unknown' },
      ...cvss.map(({ vector, score }) => ({ ...(score === undefined ? {} : { score }), vector })),
    ],
    ...(summary === '' ? {} : { description: summary }),
    ...(details === '' ? {} : { detail: details }),
    ...(fix.state === fixStates.fixed ? { recommendation: `Update to ${fix.versions.join(' or ')}` } : {}),
    advisories: references.map((url) => ({ url })),
    affects: packages.map(({ purl }) => ({ ref: purl })),
    properties: records.map(({ source, id: record }) => ({ name: 'record', value: `${source} ${record}` })),
  }
}

/** UUID of version 8 from a hash of the text. The same text gives the same UUID. */
export function uuidOf(text: string): string {
  const hex = hash('sha256', text)
  const variant = '89ab'[Number.parseInt(hex[16]!, 16) % 4]
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
