// Builds reports. A report is the scan result of an image at a time, with one entry for each vulnerability.

import { fixesFor } from '#contents/match.ts'
import { packageUrl } from '#contents/package-url.ts'
import { orderOf } from '../findings/compare.service.ts'
import { findingStates } from '../findings/findings.model.ts'
import { unknownSeverity, worse } from '../findings/severity.model.ts'
import { countedAt, type Known, textAt, turnsOf } from '../image-findings/image-findings.model.ts'
import {
  type FixState,
  fixStates,
  type ImageReport,
  isUncovered,
  type ReportedVulnerability,
  sameChangeMs,
} from '../image-findings/reports.model.ts'
import type { ImageKnowledge } from './image-knowledge.service.ts'

/** Times at which the result of an image changed, the newest first. The last entry is the time of the first result. */
export function changesOf({ from, found, closed }: ImageKnowledge, now: string): string[] {
  const all = [...found.flatMap(turnsOf), ...closed]
  const times = new Set(all.filter((time) => time > from && time <= now))
  const changes: string[] = []
  let began = ''
  for (const time of [from, ...[...times].sort()]) {
    const isSame = began !== '' && Date.parse(time) - Date.parse(began) < sameChangeMs
    // Only the first and the last change of an import are returned.
    if (isSame && changes.at(-1) !== began) changes.pop()
    if (!isSame) began = time
    changes.push(time)
  }
  return changes.reverse()
}

/** True if the result changed at exactly this time and the image has a report as of this time. */
export function wasPublished(knowledge: ImageKnowledge, time: string): boolean {
  const { from, found, closed } = knowledge
  const isChange = time === from || closed.includes(time) || found.some((one) => turnsOf(one).includes(time))
  return time !== '' && isChange && isReported(knowledge, time)
}

/**
 * Times at which the report of an image changed, the newest first. An image without findings has no report while it has coverage
 * gaps, because it would look free of vulnerabilities.
 */
export function publishedChangesOf(knowledge: ImageKnowledge, now: string): string[] {
  return changesOf(knowledge, now).filter((time) => isReported(knowledge, time))
}

const isReported = (knowledge: ImageKnowledge, time: string): boolean =>
  knowledge.found.some((one) => countedAt(one, time).length > 0) || knowledge.gapsAt(time).length === 0

/** Builds the report as of a time. */
export function reportAt(knowledge: ImageKnowledge, digest: string, time: string): ImageReport {
  const reads = knowledge.readsAt(time)
  const builds = reads.map(({ buildTime }) => buildTime).filter((build) => build !== '')
  const gaps = knowledge.gapsAt(time)
  const isOneMissing = gaps.some(({ reason }) => isUncovered(reason))
  return {
    digest,
    createTime: time,
    buildTime: isOneMissing ? '' : (builds.sort()[0] ?? ''),
    lastSeen: lastLookAt(knowledge, time) ?? time,
    vulnerabilities: vulnerabilitiesAt(knowledge, time),
    gaps,
  }
}

/** Time of the last read of a data source that covers the packages, as of a time. Undefined if no such source was read. */
export const lastLookAt = (knowledge: ImageKnowledge, time: string): string | undefined =>
  knowledge
    .readsAt(time)
    .map(({ fetchTime }) => fetchTime)
    .sort()
    .at(-1)

/** The highest severity that each vulnerability had at `time`. The keys are vulnerability IDs. */
export function severitiesAt({ found }: Pick<ImageKnowledge, 'found'>, time: string): Map<string, number> {
  const levels = new Map<string, number>()
  for (const one of found) {
    for (const id of countedAt(one, time)) {
      const before = levels.get(id)
      levels.set(id, before === undefined ? levelOf(one) : worse(levelOf(one), before))
    }
  }
  return levels
}

/** If the version of a package cannot be compared, the severity of the finding is unknown. */
const levelOf = ({ state, severity }: Known): number => (state === findingStates.unknown ? unknownSeverity : severity)

/** Vulnerabilities that the image had at `time`, sorted by ID. */
function vulnerabilitiesAt({ found, distribution }: ImageKnowledge, time: string): ReportedVulnerability[] {
  const byId = new Map<string, Known[]>()
  for (const one of found) {
    for (const id of countedAt(one, time)) {
      const those = byId.get(id)
      if (those) those.push(one)
      else byId.set(id, [one])
    }
  }
  const sorted = [...byId].sort(([one], [other]) => (one < other ? -1 : 1))
  return sorted.map(([id, those]) => vulnerabilityOf(id, those, { distribution, time }))
}

function vulnerabilityOf(
  id: string,
  those: readonly Known[],
  { distribution, time }: { distribution: string; time: string },
): ReportedVulnerability {
  const texts = those.map((one) => textAt(one, time))
  const names = those.flatMap(({ record }) => (record.vulnerabilities.length > 1 ? [] : [record.id, ...record.aliases]))
  const packages = new Map(
    those.map(({ component }) => {
      const { name, version } = component
      const purl = packageUrl(component, distribution)
      return [purl, { purl, name, version }] as const
    }),
  )
  return {
    id,
    aliases: [...new Set(names)].filter((name) => name !== id && !name.includes('/')).sort(),
    summary: texts.map(({ summary }) => summary).find((summary) => summary !== '') ?? '',
    details: those.every(isUncertain) ? uncertain : '',
    severity: those.map(levelOf).reduce(worse),
    cvss: distinct(those.flatMap(({ record }) => record.severities)),
    fix: fixOf(those),
    references: [...new Set(texts.flatMap(({ references }) => references))].slice(0, 50),
    locations: [...new Set(those.flatMap(locationsOf))].sort().slice(0, 50),
    packages: [...packages.values()].sort((one, other) => (one.purl < other.purl ? -1 : 1)),
    records: distinct(
      those.map(({ source, record }) => {
        return {
          source,
          id: record.id.includes('/') ? (record.aliases[0] ?? id) : record.id,
          url: record.references[0] ?? '',
        }
      }),
    ),
  }
}

const uncertain = 'The versions cannot be compared, so it is unknown whether the package is vulnerable.'
const isUncertain = ({ state }: Known): boolean => state === findingStates.unknown

function fixOf(found: readonly Known[]): { state: FixState; versions: string[] } {
  const those = found.filter((one) => !isUncertain(one))
  if (those.length === 0) return { state: fixStates.unknown, versions: [] }
  const versions = [
    ...new Set(those.flatMap(({ component, affected }) => fixesFor(component, affected, orderOf(component)))),
  ]
  if (versions.length > 0) return { state: fixStates.fixed, versions }
  const state = those.every(({ affected }) => affected.state === 'wont_fix') ? fixStates.wontFix : fixStates.notFixed
  return { state, versions }
}

const databases: Readonly<Record<string, string>> = {
  apk: 'lib/apk/db/installed',
  deb: 'var/lib/dpkg/status',
  rpm: 'var/lib/rpm',
}

function locationsOf({ locations, component }: Known): string[] {
  const database = databases[component.kind]
  return locations.length > 0 || database === undefined ? locations : [database]
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()]
}
