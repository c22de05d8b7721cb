// Reader of Trivy's JSON, schema version 2. The JSON can be in a scan record of cosign.
import { asObject, type Json, objectsIn, textOf } from '../json.ts'
import { Unreadable } from '../packages.ts'
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

export const isTrivy = (document: Json): boolean =>
  document.SchemaVersion === 2 && (document.ArtifactName !== undefined || document.Results !== undefined)

/**
 * Reads a report of Trivy. `version` and `built` come from the scan record around the report. Throws Unreadable if the report
 * does not show that Trivy searched for vulnerabilities. Trivy can also search only for secrets, licenses or misconfigurations.
 */
export function readTrivy(document: Json, { version = '', built = '' } = {}): ScanReport {
  if (!hasScanned(objectsIn(document.Results))) {
    throw new Unreadable('NOT_SCANNED', 'the report is not of a scan for vulnerabilities')
  }
  const found = new Findings()
  for (const result of objectsIn(document.Results)) {
    for (const one of objectsIn(result.Vulnerabilities)) {
      const fixed = textOf(one.FixedVersion)
      const status = textOf(one.Status)
      const source = asObject(one.DataSource)
      found.add({
        id: textOf(one.VulnerabilityID),
        aliases: Array.isArray(one.VendorIDs) ? one.VendorIDs.map(textOf) : [],
        summary: textOf(one.Title) || one.Description,
        details: textOf(one.Title) === '' ? '' : one.Description,
        severity: severityOf(one.Severity),
        cvss: entriesIn(one.CVSS).flatMap(([by, scores]) => scoresOf(by, scores)),
        fix: {
          state: fixStates[status] ?? (fixed === '' ? fixes.unknown : fixes.fixed),
          versions: fixed.split(/,\s*/).filter((text) => text !== ''),
        },
        references: [one.PrimaryURL, ...(Array.isArray(one.References) ? one.References : [])],
        locations: [textOf(one.PkgPath) || result.Target],
        package: { purl: asObject(one.PkgIdentifier).PURL, name: one.PkgName, version: one.InstalledVersion },
        record: { source: source.ID ?? one.SeveritySource, url: one.PrimaryURL },
      })
    }
  }
  const own = textOf(asObject(document.Trivy).Version)
  return {
    format: 'trivy',
    tool: { name: 'trivy', version: own || version },
    dbBuildTime: timeOf(built),
    vulnerabilities: found.all(),
  }
}

/**
 * True if the results show that Trivy searched for vulnerabilities. A list of packages alone does not show this, because reports
 * on licenses have one too.
 */
function hasScanned(results: readonly Json[]): boolean {
  if (results.some(({ Vulnerabilities }) => objectsIn(Vulnerabilities).length > 0)) return true
  const classes = results.map(({ Class }) => textOf(Class))
  return classes.some((one) => /^(?:os|lang)-pkgs$/.test(one)) && !classes.some((one) => one.startsWith('license'))
}

function scoresOf(by: string, one: Json): FoundScore[] {
  return [
    scoreOf(by, '4', one.V40Vector, one.V40Score),
    scoreOf(by, '3', one.V3Vector, one.V3Score),
    scoreOf(by, '2', one.V2Vector, one.V2Score),
  ].filter((score) => score !== undefined)
}
