// Reader of Grype's JSON, which lists matches of packages and vulnerabilities.
import { asObject, type Json, objectsIn, textOf } from '../json.ts'
import { Findings, fixes, fixStates, type ScanReport, scoreOf, severityOf, timeOf } from './scan-report.ts'

export const isGrype = (document: Json): boolean =>
  Array.isArray(document.matches) && asObject(document.descriptor).name === 'grype'

export function readGrype(document: Json): ScanReport {
  const { version, db } = asObject(document.descriptor)
  const found = new Findings()
  for (const match of objectsIn(document.matches)) {
    const vulnerability = asObject(match.vulnerability)
    const related = objectsIn(match.relatedVulnerabilities)
    const { name, version: of, purl, locations } = asObject(match.artifact)
    const { state, versions } = asObject(vulnerability.fix)
    const advisories = objectsIn(vulnerability.advisories).map(({ link }) => link)
    const urls = [vulnerability, ...related].flatMap(({ urls: some }) => (Array.isArray(some) ? some : []))
    found.add({
      id: textOf(vulnerability.id),
      aliases: related.map(({ id }) => textOf(id)).filter((id) => id !== textOf(vulnerability.id)),
      summary: [vulnerability, ...related].map(({ description }) => textOf(description)).find((text) => text !== ''),
      severity: severityOf(vulnerability.severity),
      cvss: [vulnerability, ...related].flatMap(({ cvss, namespace }) =>
        objectsIn(cvss).flatMap((one) => {
          const by = textOf(one.source) || textOf(namespace)
          return scoreOf(by, textOf(one.version), one.vector, asObject(one.metrics).baseScore) ?? []
        }),
      ),
      fix: { state: fixStates[textOf(state)] ?? fixes.unknown, versions: Array.isArray(versions) ? versions : [] },
      references: [vulnerability.dataSource, ...advisories, ...urls],
      locations: objectsIn(locations).map(({ path }) => path),
      package: { purl, name, version: of },
      record: { source: vulnerability.namespace, url: vulnerability.dataSource },
    })
  }
  return {
    format: 'grype',
    tool: { name: 'grype', version: textOf(version) },
    // Since version 6 of Grype's database, the time is one level deeper.
    dbBuildTime: timeOf(asObject(db).built) || timeOf(asObject(asObject(db).status).built),
    vulnerabilities: found.all(),
  }
}
