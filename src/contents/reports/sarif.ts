// Reader of SARIF 2.1.0 from image scanners. SARIF has no packages, so only vulnerabilities and severities are read. Tools of any
// kind write SARIF. A report without results does not show if the tool searched for vulnerabilities, so it is refused.
import { asObject, type Json, objectsIn, textOf } from '../json.ts'
import { Unreadable } from '../packages.ts'
import { Findings, fixes, type ScanReport, severityOf, severityOfScore, timeOf } from './scan-report.ts'

export const isSarif = (document: Json): boolean => document.version === '2.1.0' && Array.isArray(document.runs)

export function readSarif(document: Json): ScanReport {
  const found = new Findings()
  let named = 0
  const runs = objectsIn(document.runs)
  for (const run of runs) {
    const rules = objectsIn(asObject(asObject(run.tool).driver).rules)
    const byId = new Map(rules.map((rule) => [textOf(rule.id), rule]))
    for (const { ruleId, ruleIndex } of objectsIn(run.results)) {
      const rule = asObject(byId.get(textOf(ruleId)) ?? (typeof ruleIndex === 'number' ? rules[ruleIndex] : undefined))
      // Grype adds the package to the id.
      const name = textOf(ruleId) || textOf(rule.id)
      const id = /^(?:CVE-\d+-\d+|GHSA(?:-[0-9a-z]{4}){3})(?=-|$)/.exec(name)?.[0] ?? name
      if (id === name && !isVulnerability(name, rule)) continue
      named++
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
  if (named === 0) throw new Unreadable('NOT_SCANNED', 'the report has no vulnerability IDs')
  const driver = asObject(asObject(runs[0]?.tool).driver)
  return {
    format: 'sarif',
    tool: { name: textOf(driver.name).toLowerCase(), version: textOf(driver.version) },
    dbBuildTime: timeOf(''),
    vulnerabilities: found.all(),
  }
}

/** True if the result is a vulnerability. Results can also be secrets, misconfigurations and problems in source code. */
function isVulnerability(id: string, rule: Json): boolean {
  if (/^(?:CVE|GHSA|GO|PYSEC|RUSTSEC|OSV|DSA|DLA|USN|RHSA|ELSA|ALAS\w*|SNYK|TEMP|[A-Z]+-CVE)-[\w.:-]*\d/.test(id))
    return true
  const { tags } = asObject(rule.properties)
  return /Vulnerability$/.test(textOf(rule.name)) || (Array.isArray(tags) && tags.includes('vulnerability'))
}

/** Severity of a rule. Scanners write the severity as a tag, and a score as a text. */
function severityIn(rule: Json): number {
  const properties = asObject(rule.properties)
  const tags = Array.isArray(properties.tags) ? properties.tags : []
  const tagged = tags.map(severityOf).find((level) => level !== 0)
  const score = textOf(properties['security-severity'])
  return tagged ?? (score === '' ? 0 : severityOfScore(Number(score)))
}
