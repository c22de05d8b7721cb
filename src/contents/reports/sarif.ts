// SARIF 2.1.0 of a scanner of images. It names no packages, so it tells what there is and how bad it is, and no more.
import { asObject, type Json, objectsIn, textOf } from '../json.ts'
import { Findings, fixes, type ScanReport, severityOf, severityOfScore, timeOf } from './scan-report.ts'

export const isSarif = (document: Json): boolean => document.version === '2.1.0' && Array.isArray(document.runs)

export function readSarif(document: Json): ScanReport {
  const found = new Findings()
  const runs = objectsIn(document.runs)
  for (const run of runs) {
    const rules = objectsIn(asObject(asObject(run.tool).driver).rules)
    const byId = new Map(rules.map((rule) => [textOf(rule.id), rule]))
    for (const { ruleId, ruleIndex } of objectsIn(run.results)) {
      const rule = asObject(byId.get(textOf(ruleId)) ?? (typeof ruleIndex === 'number' ? rules[ruleIndex] : undefined))
      // Grype puts the package behind the id.
      const name = textOf(ruleId) || textOf(rule.id)
      const id = /^(?:CVE-\d+-\d+|GHSA(?:-[0-9a-z]{4}){3})(?=-|$)/.exec(name)?.[0] ?? name
      found.add({
        id,
        summary: asObject(rule.shortDescription).text,
        severity: severityIn(rule),
        fix: { state: fixes.unknown, versions: [] },
        references: [rule.helpUri],
        record: { source: '', url: rule.helpUri },
      })
    }
  }
  const driver = asObject(asObject(runs[0]?.tool).driver)
  return {
    format: 'sarif',
    tool: { name: textOf(driver.name).toLowerCase(), version: textOf(driver.version) },
    dbBuildTime: timeOf(''),
    vulnerabilities: found.all(),
  }
}

/** Scanners put the severity among the tags, and a score as text for those who show results in colours. */
function severityIn(rule: Json): number {
  const properties = asObject(rule.properties)
  const tags = Array.isArray(properties.tags) ? properties.tags : []
  const said = tags.map(severityOf).find((level) => level !== 0)
  const score = textOf(properties['security-severity'])
  return said ?? (score === '' ? 0 : severityOfScore(Number(score)))
}
