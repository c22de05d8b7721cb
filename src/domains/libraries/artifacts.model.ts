import type { Fields } from '#lib/fields.ts'
import { mavenKey } from '#versions/maven.ts'
import { pep440Key } from '#versions/pep440.ts'
import { projectName, projectNamePattern } from '#versions/pep503.ts'

export type Ecosystem = 'java' | 'python'

/** A library of an ecosystem, as its newest version shows it. */
export type Artifact = {
  uid: string
  ecosystem: Ecosystem
  name: string
  description: string
  latestVersion: string
  versionCount: number
  /** When the first version was created. */
  createTime: string
  /** When the newest version was created. */
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
  /** Whether it is a build in which vulnerabilities were remedied. */
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

/** What a source says of one version. Times are ISO text, or empty when the source does not know. */
export type VersionFacts = {
  version: string
  description: string
  /** Of all its files together; 0 when the source does not know. */
  sizeBytes: number
  /** Whether it is a build in which vulnerabilities were remedied. */
  remediated: boolean
  /** When its first file appeared. */
  releaseTime: string
  /** When its last file appeared. */
  changeTime: string
}

/** What a source says of one library. */
export type ArtifactFacts = { ecosystem: Ecosystem; name: string; versions: readonly VersionFacts[] }

/** What is kept of a version: the facts of all sources, and when we first heard of it. */
export type StoredVersion = VersionFacts & { firstTime: string }

/** What a library may be called in its ecosystem; those of Java are written `group:artifact`. */
export const namePatterns: Record<Ecosystem, RegExp> = {
  java: /^[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+$/,
  python: projectNamePattern,
}
export const maxNameLength = 255

/** The one way to write a name; Java has no other. */
export function plainName(ecosystem: Ecosystem, name: string): string {
  return ecosystem === 'python' ? projectName(name) : name
}

export function uidOf(ecosystem: Ecosystem, name: string): string {
  return `${ecosystem}:${name}`
}

/** Text that sorts by bytes as the ecosystem orders its versions. */
export function sortKeyOf(ecosystem: Ecosystem, version: string): string {
  return ecosystem === 'python' ? pep440Key(version) : mavenKey(version)
}

/** What both sources know. The order in which they are heard, and how often, makes no difference but to the description. */
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
