// Writes the findings of an image as SARIF 2.1.0, https://docs.oasis-open.org/sarif/sarif/v2.1.0. The document has one rule for
// each vulnerability, and one result for each package.
import { hash } from 'node:crypto'
import { levelName } from '../findings/severity.model.ts'
import { severityLevels } from '../records/records.model.ts'
import { actionOf, gapText, type StatedImage, type Statement } from './exports.model.ts'

export function toSarif({ path, digest, purl, time, tool, statements, gaps }: StatedImage): object {
  const rules = new Map(statements.map((one) => [one.vulnerability, one]))
  const indexes = new Map([...rules.keys()].map((id, i) => [id, i]))
  return {
    $schema: 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { ...tool, rules: [...rules.values()].map(ruleOf) } },
        // Coverage gaps mean that the image can also have vulnerabilities without a result.
        invocations: [
          {
            executionSuccessful: gaps.length === 0,
            endTimeUtc: time,
            toolExecutionNotifications: gaps.map((gap) => ({ level: 'warning', message: { text: gapText(gap) } })),
          },
        ],
        properties: { image: path, digest, purl },
        results: statements.flatMap((one) => resultsOf(one, indexes.get(one.vulnerability)!, path)),
      },
    ],
  }
}

function ruleOf({ vulnerability, summary, severity, cvss, references }: Statement): object {
  const scores = cvss.flatMap(({ score }) => score ?? [])
  return {
    id: vulnerability,
    name: 'PackageVulnerability',
    shortDescription: { text: summary || vulnerability },
    ...(references[0] === undefined ? {} : { helpUri: references[0] }),
    properties: {
      tags: ['vulnerability', 'security', levelName(severity).toUpperCase()],
      ...(scores.length === 0 ? {} : { 'security-severity': Math.max(...scores).toFixed(1) }),
    },
  }
}

function resultsOf(one: Statement, ruleIndex: number, path: string): object[] {
  const { vulnerability, status, note, packages } = one
  const isOpen = status !== 'uncertain'
  return packages.map(({ purl, name, version, locations }) => ({
    ruleId: vulnerability,
    ruleIndex,
    // If it is not certain that the package is affected, the finding is marked for review and has no level.
    ...(isOpen ? { level: levelOf(one.severity) } : { kind: 'review', level: 'none' }),
    message: { text: `${vulnerability} in ${name} ${version}. ${actionOf(one)}` },
    locations: [
      {
        physicalLocation: { artifactLocation: { uri: uriOf(locations[0] ?? path) } },
        logicalLocations: [{ fullyQualifiedName: purl, kind: 'package' }],
      },
    ],
    partialFingerprints: { 'package/v1': hash('sha256', `${vulnerability} ${purl}`) },
    ...(status === 'accepted' || status === 'suppressed'
      ? { suppressions: [{ kind: 'external', status: 'accepted', justification: note }] }
      : {}),
  }))
}

const uriOf = (path: string): string => path.split('/').map(encodeURIComponent).join('/')

function levelOf(severity: number): 'error' | 'warning' | 'note' {
  const { critical, high, low, negligible } = severityLevels
  if (severity === critical || severity === high) return 'error'
  return severity === low || severity === negligible ? 'note' : 'warning'
}
