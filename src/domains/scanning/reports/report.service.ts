// Makes reports: what was known of an image at a moment, each vulnerability once.

import { fixesFor } from '#contents/match.ts'
import { packageUrl } from '#contents/package-url.ts'
import type { PackageKind } from '#contents/packages.ts'
import { heldAt, type Known, vulnerabilityIds } from '../known/known.model.ts'
import { orderOf } from '../matching/matching.service.ts'
import { worse } from '../matching/severity.model.ts'
import type { ImageKnowledge } from './image-knowledge.service.ts'
import {
  type FixState,
  fixStates,
  type ImageReport,
  type ReportedVulnerability,
  sameChangeMs,
} from './reports.model.ts'

/** The version of what is compared how, as reports name it. */
export const scannerVersion = '0.1.0'

/** When what is known of an image changed, the newest first; the first of all is when it was known at all. */
export function changesOf({ from, found }: ImageKnowledge, now: string): string[] {
  const times = new Set(
    found.flatMap(({ foundTime, goneTime }) => [foundTime, goneTime]).filter((time) => time > from && time <= now),
  )
  const changes: string[] = []
  for (const time of [from, ...[...times].sort()]) {
    const last = changes.at(-1)
    // The last of an import stands for all of it.
    if (last !== undefined && Date.parse(time) - Date.parse(last) < sameChangeMs) changes.pop()
    changes.push(time)
  }
  return changes.reverse()
}

/** What was known at a moment. */
export function reportAt(knowledge: ImageKnowledge, digest: string, time: string): ImageReport {
  const reads = knowledge.readsAt(time)
  const builds = reads.map(({ buildTime }) => buildTime).filter((build) => build !== '')
  const looks = reads.map(({ fetchTime }) => fetchTime)
  return {
    digest,
    createTime: time,
    buildTime: builds.sort()[0] ?? '',
    lastSeen: looks.sort().at(-1) ?? time,
    vulnerabilities: vulnerabilitiesAt(knowledge, time),
  }
}

/** The worst severity of each vulnerability at a moment, by its id. */
export function severitiesAt({ found }: ImageKnowledge, time: string): Map<string, number> {
  const levels = new Map<string, number>()
  for (const one of found) {
    if (!heldAt(one, time)) continue
    for (const id of vulnerabilityIds(one.record)) {
      const before = levels.get(id)
      levels.set(id, before === undefined ? one.severity : worse(one.severity, before))
    }
  }
  return levels
}

/** Ordered by id. */
function vulnerabilitiesAt({ found, distribution }: ImageKnowledge, time: string): ReportedVulnerability[] {
  const byId = new Map<string, Known[]>()
  for (const one of found) {
    if (!heldAt(one, time)) continue
    for (const id of vulnerabilityIds(one.record)) {
      const those = byId.get(id)
      if (those) those.push(one)
      else byId.set(id, [one])
    }
  }
  const sorted = [...byId].sort(([one], [other]) => (one < other ? -1 : 1))
  return sorted.map(([id, those]) => vulnerabilityOf(id, those, distribution))
}

function vulnerabilityOf(id: string, those: readonly Known[], distribution: string): ReportedVulnerability {
  const names = those.flatMap(({ record }) =>
    vulnerabilityIds(record).length > 1 ? [] : [record.id, ...record.aliases],
  )
  const packages = new Map(
    those.map(({ component }) => {
      const { name, version } = component
      const purl = packageUrl({ ...component, kind: component.kind as PackageKind }, distribution)
      return [purl, { purl, name, version }] as const
    }),
  )
  return {
    id,
    aliases: [...new Set(names)].filter((name) => name !== id && !name.includes('/')).sort(),
    summary: those.map(({ record }) => record.summary).find((summary) => summary !== '') ?? '',
    severity: those.map(({ severity }) => severity).reduce(worse),
    cvss: distinct(those.flatMap(({ record }) => record.severities)),
    fix: fixOf(those),
    references: [...new Set(those.flatMap(({ record }) => record.references))].slice(0, 50),
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

function fixOf(those: readonly Known[]): { state: FixState; versions: string[] } {
  const versions = [
    ...new Set(those.flatMap(({ component, affected }) => fixesFor(component, affected, orderOf(component)))),
  ]
  if (versions.length > 0) return { state: fixStates.fixed, versions }
  const state = those.every(({ affected }) => affected.state === 'wont_fix') ? fixStates.wontFix : fixStates.notFixed
  return { state, versions }
}

const databases: Readonly<Record<string, string>> = { apk: 'lib/apk/db/installed', deb: 'var/lib/dpkg/status' }

function locationsOf({ locations, component }: Known): string[] {
  const database = databases[component.kind]
  return locations.length > 0 || database === undefined ? locations : [database]
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()]
}
