import type { Call } from '#app.ts'
import { type FieldViolation, refuseIfAny } from '#lib/errors.ts'
import type { Change, Stored } from './artifact-imports.store.ts'
import * as store from './artifact-imports.store.ts'
import {
  type Artifact,
  type ArtifactFacts,
  createTimeOf,
  joinFacts,
  maxNameLength,
  namePatterns,
  plainName,
  type StoredVersion,
  sortKeyOf,
  uidOf,
  type VersionFacts,
} from './artifacts.model.ts'
import { catalogScopesOf } from './catalog-scopes.ts'

export type ImportRun = { id: string; after: string }
export type ImportCounts = {
  created: number
  updated: number
  unchanged: number
  versionsCreated: number
  versionsUpdated: number
  versionsUnchanged: number
}

const maxArtifacts = 1000
const maxVersions = 50_000
const maxVersionLength = 128

/**
 * Merges the library data of a source with the stored data. Either all data is merged, or none. The same transaction stores the
 * position of the run.
 */
export async function importArtifacts(
  call: Call,
  sources: readonly ArtifactFacts[],
  run: ImportRun | undefined,
): Promise<ImportCounts> {
  checkSources(sources, run)
  const heard = byUid(sources)

  const counts = await call.app.db.tx(async (tx) => {
    const known = await store.findStored(tx, [...heard.keys()])
    const changes = [...heard].map(([uid, facts]) => changeOf(uid, facts, known.get(uid), call.now))
    await store.saveChanges(
      tx,
      changes.filter(({ versions }) => versions.length > 0),
    )
    if (run) await store.saveRun(tx, run.id, run.after, call.now)
    return countsOf(changes, [...heard.values()])
  })
  call.log.info('artifacts imported', { ...counts })
  return counts
}

/** Position of an import run. Empty if the run has not begun or has ended. */
export function getRun(call: Call, id: string): Promise<string> {
  refuseIfAny(runViolations({ id, after: '' }, ''))
  return store.findRun(call.app.db, id)
}

type ImportedArtifact = { ecosystem: ArtifactFacts['ecosystem']; name: string; versions: Map<string, VersionFacts> }

/** Libraries by uid. Each library occurs once, with each version once. */
function byUid(sources: readonly ArtifactFacts[]): Map<string, ImportedArtifact> {
  const heard = new Map<string, ImportedArtifact>()
  for (const { ecosystem, name: written, versions } of sources) {
    const name = plainName(ecosystem, written)
    const uid = uidOf(ecosystem, name)
    const one = heard.get(uid) ?? { ecosystem, name, versions: new Map<string, VersionFacts>() }
    for (const facts of versions) {
      const other = one.versions.get(facts.version)
      one.versions.set(facts.version, other ? joinFacts(other, facts) : facts)
    }
    heard.set(uid, one)
  }
  return heard
}

function changeOf(
  uid: string,
  { ecosystem, name, versions }: ImportedArtifact,
  before: Stored | undefined,
  now: string,
): Change {
  const all = new Map(before?.versions)
  const changed: StoredVersion[] = []
  for (const facts of versions.values()) {
    const known = all.get(facts.version)
    const joined = known ? joinFacts(known, facts) : { ...facts, firstTime: now }
    if (known && isSame(known, joined)) continue
    changed.push(joined)
    all.set(facts.version, joined)
  }
  if (before && changed.length === 0) return { before, artifact: before.artifact, scopes: before.scopes, versions: [] }
  const scopes = catalogScopesOf(ecosystem, name, all.values())
  return { before, artifact: summaryOf({ uid, ecosystem, name }, [...all.values()]), scopes, versions: changed }
}

function isSame(one: StoredVersion, two: StoredVersion): boolean {
  return (Object.keys(one) as (keyof StoredVersion)[]).every((key) => one[key] === two[key])
}

/** Summary of a library from its versions. `versions` must not be empty. */
function summaryOf(of: Pick<Artifact, 'uid' | 'ecosystem' | 'name'>, versions: readonly StoredVersion[]): Artifact {
  const keyed = versions.map((version) => ({ version, key: sortKeyOf(of.ecosystem, version.version) }))
  const newest = keyed.reduce((a, b) => (isNewer(b, a) ? b : a)).version
  return {
    ...of,
    description: newest.description,
    latestVersion: newest.version,
    versionCount: versions.length,
    createTime: versions.map(createTimeOf).reduce((a, b) => (b < a ? b : a)),
    updateTime: createTimeOf(newest),
  }
}

type Keyed = { version: StoredVersion; key: string }

/** Compares in the same order as the list of versions. Equal versions are sorted by their spelling. */
function isNewer(one: Keyed, two: Keyed): boolean {
  return one.key === two.key ? one.version.version > two.version.version : one.key > two.key
}

function countsOf(changes: readonly Change[], heard: readonly ImportedArtifact[]): ImportCounts {
  const versions = heard.reduce((sum, one) => sum + one.versions.size, 0)
  const saved = changes.reduce((sum, one) => sum + one.versions.length, 0)
  const isNew = ({ before }: Change, { version }: StoredVersion) => !before?.versions.has(version)
  const versionsCreated = changes.reduce((sum, one) => sum + one.versions.filter((v) => isNew(one, v)).length, 0)
  const created = changes.filter(({ before }) => !before).length
  const updated = changes.filter((one) => one.before && one.versions.length > 0).length
  return {
    created,
    updated,
    unchanged: changes.length - created - updated,
    versionsCreated,
    versionsUpdated: saved - versionsCreated,
    versionsUnchanged: versions - saved,
  }
}

function checkSources(sources: readonly ArtifactFacts[], run: ImportRun | undefined): void {
  const total = sources.reduce((sum, { versions }) => sum + versions.length, 0)
  const tooMany: FieldViolation[] = [
    ...(sources.length > maxArtifacts
      ? [{ field: 'artifacts', description: `must have at most ${maxArtifacts} entries` }]
      : []),
    ...(total > maxVersions
      ? [{ field: 'artifacts', description: `must have at most ${maxVersions} versions together` }]
      : []),
  ]
  refuseIfAny(tooMany)
  refuseIfAny([
    ...sources.flatMap((source, i) => violationsOf(source, `artifacts[${i}]`)),
    ...(run ? runViolations(run, 'run.') : []),
  ])
}

function violationsOf({ ecosystem, name, versions }: ArtifactFacts, at: string): FieldViolation[] {
  const found: FieldViolation[] = []
  const add = (field: string, description: string) => found.push({ field: `${at}.${field}`, description })
  if (name.length > maxNameLength) add('name', `must be at most ${maxNameLength} characters long`)
  else if (!namePatterns[ecosystem].test(name)) add('name', `must match "${namePatterns[ecosystem].source}"`)
  if (versions.length === 0) add('versions', 'must have at least one version')
  for (const [i, { version, description, sizeBytes }] of versions.entries()) {
    if (version.length > maxVersionLength) {
      add(`versions[${i}].version`, `must be at most ${maxVersionLength} characters long`)
    } else if (!/^[!-~]+$/.test(version)) add(`versions[${i}].version`, 'must be visible ASCII characters')
    if (!/^\P{Cc}{0,512}$/u.test(description)) {
      add(`versions[${i}].description`, 'must be one line of at most 512 characters')
    }
    if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) {
      add(`versions[${i}].size_bytes`, `must be from 0 to ${Number.MAX_SAFE_INTEGER}`)
    }
  }
  return found
}

function runViolations({ id, after }: ImportRun, at: string): FieldViolation[] {
  const problems: FieldViolation[] = []
  if (!/^[0-9a-f]{64}$/.test(id))
    problems.push({ field: `${at}id`, description: 'must be 64 lowercase hexadecimal digits' })
  if (after.length > maxNameLength) {
    problems.push({ field: `${at}after`, description: `must be at most ${maxNameLength} characters long` })
  }
  return problems
}
