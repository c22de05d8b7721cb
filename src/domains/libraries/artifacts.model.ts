import type { Fields } from '#lib/fields.ts'
import { mavenKey } from '#versions/maven.ts'
import { pep440Key } from '#versions/pep440.ts'
import { projectName, projectNamePattern } from '#versions/pep503.ts'

export type Ecosystem = 'java' | 'python'

/** A library of an ecosystem, with the data of its newest version. */
export type Artifact = {
  uid: string
  ecosystem: Ecosystem
  name: string
  description: string
  latestVersion: string
  versionCount: number
  /** Creation time of the first version. */
  createTime: string
  /** Creation time of the newest version. */
  updateTime: string
}

export type ArtifactVersion = {
  uid: string
  name: string
  version: string
  description: string
  createTime: string
  updateTime: string
  sizeBytes: number
  /** True for a build in which vulnerabilities were fixed. */
  remediated: boolean
}

export const artifactType = 'libraries.pinfold.dev/Artifact'

export const artifactFields = {
  uid: { column: 'uid', sort: true },
  name: { column: 'name', sort: true },
  createTime: { column: 'create_time', sort: true },
  updateTime: { column: 'update_time', sort: true },
} as const satisfies Fields<Artifact>

export const versionFields = { version: { column: 'version', sort: true } } as const satisfies Fields<ArtifactVersion>

/** Data of a source about one version. Times are ISO 8601, or empty if the source does not state them. */
export type VersionFacts = {
  version: string
  description: string
  /** Total size of the version's files. 0 if the source does not state the size. */
  sizeBytes: number
  /** True for a build in which vulnerabilities were fixed. */
  remediated: boolean
  /** Time of the version's first file. */
  releaseTime: string
  /** Time of the version's last file. */
  changeTime: string
}

/** Data of a source about one library. */
export type ArtifactFacts = { ecosystem: Ecosystem; name: string; versions: readonly VersionFacts[] }

/** Stored version: the merged data of all sources, and the time of the first import. */
export type StoredVersion = VersionFacts & { firstTime: string }

/** Patterns of valid library names by ecosystem. Names of Java libraries have the form `group:artifact`. */
export const namePatterns: Record<Ecosystem, RegExp> = {
  java: /^[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+$/,
  python: projectNamePattern,
}
export const maxNameLength = 255

/** Normalized name of a library. Names of Java libraries are unchanged. */
export function plainName(ecosystem: Ecosystem, name: string): string {
  return ecosystem === 'python' ? projectName(name) : name
}

export function uidOf(ecosystem: Ecosystem, name: string): string {
  return `${ecosystem}:${name}`
}

/** Text whose byte order is the version order of the ecosystem. */
export function sortKeyOf(ecosystem: Ecosystem, version: string): string {
  return ecosystem === 'python' ? pep440Key(version) : mavenKey(version)
}

/** Merges the data of two sources. The order and number of imports make no difference, except for the description. */
export function joinFacts<T extends VersionFacts>(known: T, heard: VersionFacts): T {
  const times = [known.releaseTime, heard.releaseTime].filter((time) => time !== '').sort()
  return {
    ...known,
    description: heard.description || known.description,
    sizeBytes: Math.max(known.sizeBytes, heard.sizeBytes),
    remediated: known.remediated || heard.remediated,
    releaseTime: times[0] ?? '',
    changeTime: known.changeTime > heard.changeTime ? known.changeTime : heard.changeTime,
  }
}

export function createTimeOf(version: StoredVersion): string {
  return version.releaseTime || version.firstTime
}
