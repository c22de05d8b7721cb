// What several scanners say of an image, as one report.

import { fixStates, type ImageReport, type ReportedVulnerability } from '../known/reports.model.ts'
import { worse } from '../matching/severity.model.ts'

/** All that they say, each vulnerability once. `reports` are some, the newest first. */
export function joinReports(reports: readonly [ImageReport, ...ImageReport[]]): ImageReport {
  const [newest, ...others] = reports
  if (others.length === 0) return newest
  const byId = new Map<string, ReportedVulnerability>()
  for (const one of reports.flatMap(({ vulnerabilities }) => vulnerabilities)) {
    const before = byId.get(one.id)
    byId.set(one.id, before ? join(before, one) : one)
  }
  const builds = reports.map(({ buildTime }) => buildTime)
  const said = (of: (scanner: NonNullable<ImageReport['scanner']>) => string): string =>
    reports.map(({ scanner }) => (scanner ? of(scanner) : '')).join(', ')
  return {
    ...newest,
    // Of one that does not say it nobody knows how old it is.
    buildTime: builds.includes('') ? '' : builds.sort()[0]!,
    vulnerabilities: [...byId.values()].sort((one, other) => (one.id < other.id ? -1 : 1)),
    scanner: { name: 0, tool: said(({ tool }) => tool), version: said(({ version }) => version) },
  }
}

function join(one: ReportedVulnerability, other: ReportedVulnerability): ReportedVulnerability {
  const purls = new Set(one.packages.map(({ purl }) => purl))
  return {
    id: one.id,
    aliases: [...new Set([...one.aliases, ...other.aliases])].sort(),
    summary: one.summary || other.summary,
    details: one.details || other.details,
    severity: worse(one.severity, other.severity),
    cvss: [...one.cvss, ...other.cvss],
    fix: {
      state: weights.indexOf(other.fix.state) > weights.indexOf(one.fix.state) ? other.fix.state : one.fix.state,
      versions: [...new Set([...one.fix.versions, ...other.fix.versions])],
    },
    references: [...new Set([...one.references, ...other.references])],
    locations: [...new Set([...one.locations, ...other.locations])],
    packages: [...one.packages, ...other.packages.filter(({ purl }) => !purls.has(purl))],
    records: [...one.records, ...other.records],
  }
}

/** Fixed for one is fixed. */
const weights = [fixStates.unknown, fixStates.wontFix, fixStates.notFixed, fixStates.fixed] as const
