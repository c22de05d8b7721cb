// Reader of reports of Harbor's pluggable scanner API, with the media type application/vnd.security.vulnerability.report.
import { asObject, type Json, objectsIn, textOf } from '../json.ts'
import {
  entriesIn,
  Findings,
  type FoundScore,
  fixes,
  fixStates,
  type ScanReport,
  scoreOf,
  severityOf,
  timeOf,
} from './scan-report.ts'

/** True for a report of this type. The list can be missing if the adapter has found no vulnerabilities. */
export const isHarbor = ({ artifact, scanner, vulnerabilities }: Json): boolean =>
  textOf(asObject(artifact).digest) !== '' &&
  textOf(asObject(scanner).name) !== '' &&
  (Array.isArray(vulnerabilities) || vulnerabilities === null || vulnerabilities === undefined)

export function readHarbor(document: Json): ScanReport {
  const { name, version } = asObject(document.scanner)
  const found = new Findings()
  for (const one of objectsIn(document.vulnerabilities)) {
    const links = Array.isArray(one.links) ? one.links : []
    const fixed = textOf(one.fix_version)
    const status = textOf(one.status).toLowerCase()
    found.add({
      id: textOf(one.id),
      summary: one.description,
      severity: severityOf(one.severity),
      cvss: scoresOf(one),
      fix: {
        state: fixed === '' ? (fixStates[status] ?? fixes.unknown) : fixes.fixed,
        versions: fixed.split(/,\s*/).filter((text) => text !== ''),
      },
      references: links,
      package: { purl: '', name: one.package, version: one.version },
      record: { source: '', url: links[0] },
    })
  }
  return {
    format: 'harbor',
    tool: { name: textOf(name).toLowerCase(), version: textOf(version) },
    dbBuildTime: timeOf(''),
    vulnerabilities: found.all(),
  }
}

/** Scores of vendors. Trivy's adapter fills in no other scores. */
function scoresOf(one: Json): FoundScore[] {
  const preferred = asObject(one.preferred_cvss)
  const vendors = entriesIn(asObject(one.vendor_attributes).CVSS)
  return [
    scoreOf('', '3', preferred.vector_v3, preferred.score_v3),
    scoreOf('', '2', preferred.vector_v2, preferred.score_v2),
    ...vendors.flatMap(([by, scores]) => [
      scoreOf(by, '3', scores.V3Vector, scores.V3Score),
      scoreOf(by, '2', scores.V2Vector, scores.V2Score),
    ]),
  ].filter((score) => score !== undefined)
}
