// Compares the packages and vulnerabilities of two images.
import type { Call } from '#app.ts'
import { kindOfEcosystem } from '#contents/ecosystems.ts'
import { invalid, permissionDenied } from '#lib/errors.ts'
import { isUid } from '#lib/uid.ts'
import { levelName, worse } from '../findings/severity.model.ts'
import { countedAt } from '../image-findings/image-findings.model.ts'
import { type Gap, isUncovered } from '../image-findings/reports.model.ts'
import { type ImageFindings, imageFindings, type ShownFinding } from '../reports/findings.service.ts'
import { overLimit, truncated } from '../reports/image-knowledge.service.ts'
import type { ResultCoverage } from '../reports/result-coverage.model.ts'
import { allPackages, listOfImage, type ShownPackage } from './image-packages.service.ts'
import { mostPurls } from './images.model.ts'

export type ImageName = { repoUid: string; digest: string }
export type ComparedVulnerability = { vulnerability: string; severity: string; purls: string[] }

export type ImageComparison = {
  added: ShownPackage[]
  removed: ShownPackage[]
  changed: { package: ShownPackage; baseVersion: string }[]
  found: ComparedVulnerability[]
  resolved: ComparedVulnerability[]
  /** Vulnerabilities of the base image for which it is unknown if the compared image has them. */
  unknown: ComparedVulnerability[]
  gaps: Gap[]
  baseGaps: Gap[]
  coverage: ResultCoverage
  baseCoverage: ResultCoverage
}

/**
 * Compares an image with a base image. A vulnerability or package is resolved or removed only if the image certainly does not
 * have it.
 */
export async function compareImages(call: Call, image: ImageName, base: ImageName): Promise<ImageComparison> {
  const baseRepo = base.repoUid === '' ? image.repoUid : base.repoUid
  if (!isUid(baseRepo)) throw invalid({ field: 'base_repo_uid', description: 'is not a uid' })
  const { access } = call.method
  const needed = access.mode === 'scoped' ? access.capabilities : []
  if (!call.caller.rights.holds(baseRepo, needed)) throw permissionDenied()
  const lists = {
    image: await listOfImage(call, image.repoUid, image.digest),
    base: await listOfImage(call, baseRepo, base.digest, 'base_digest'),
  }
  const [own, other] = [await allPackages(call, lists.image), await allPackages(call, lists.base)]
  const [now, before] = [
    await imageFindings(call, image.repoUid, image.digest),
    await imageFindings(call, baseRepo, base.digest),
  ]
  const isKnown = { image: isCompared(now.gaps), base: isCompared(before.gaps) }
  const packages = comparePackages(own, other)
  const counted = { image: countedIn(now.findings, call.now), base: countedIn(before.findings, call.now) }
  const only = (these: typeof counted.image, those: typeof counted.image) =>
    [...these.values()].filter(({ vulnerability }) => !those.has(vulnerability))
  const gone = Object.groupBy(only(counted.base, counted.image), ({ vulnerability }) =>
    isKnown.image && !mayBeIn(vulnerability, now, before) ? 'resolved' : 'unknown',
  )
  return {
    added: lists.base.listNo === undefined ? [] : packages.added,
    removed: lists.image.listNo === undefined ? [] : packages.removed,
    changed: packages.changed,
    found: isKnown.base ? only(counted.image, counted.base) : [],
    resolved: gone.resolved ?? [],
    unknown: gone.unknown ?? [],
    gaps: now.gaps,
    baseGaps: before.gaps,
    coverage: now.coverage,
    baseCoverage: before.coverage,
  }
}

/** True if the packages of the image were compared. Otherwise the image would look as if it had no packages. */
const isCompared = (gaps: readonly Gap[]): boolean => !gaps.some(({ reason }) => incomparable.has(reason))

const incomparable: ReadonlySet<string> = new Set([
  'CONTENTS_UNREAD',
  'NOT_COMPARED',
  overLimit.reason,
  truncated.reason,
])

/**
 * True if an image may have a vulnerability that was not found. The reason can be content that was not read, packages without a
 * data source, or versions that cannot be compared.
 */
function mayBeIn(vulnerability: string, image: ImageFindings, base: ImageFindings): boolean {
  if (image.uncertain.some(({ vulnerabilities }) => vulnerabilities.includes(vulnerability))) return true
  const found = base.findings.filter(({ vulnerabilities }) => vulnerabilities.includes(vulnerability))
  return image.gaps.some(({ reason, subject }) => {
    if (reason === 'CONTENTS_INCOMPLETE') return true
    if (!isUncovered(reason)) return false
    // The gap concerns unknown packages, or a missing part of a data source. Such a gap can hide any vulnerability.
    if (subject === '' || subject.includes('/')) return true
    const kind = kindOfEcosystem(subject)
    // The image can have the same package in another release of its distribution.
    return found.some(({ component }) => (kind ? component.kind === kind : component.ecosystem === subject))
  })
}

function comparePackages(own: readonly ShownPackage[], base: readonly ShownPackage[]) {
  const nameOf = ({ kind, name, architecture }: ShownPackage) => JSON.stringify([kind, name, architecture])
  const versionOf = (one: ShownPackage) => JSON.stringify([nameOf(one), one.version])
  const [ownVersions, baseVersions] = [new Set(own.map(versionOf)), new Set(base.map(versionOf))]
  const added = Map.groupBy(
    own.filter((one) => !baseVersions.has(versionOf(one))),
    nameOf,
  )
  const removed = Map.groupBy(
    base.filter((one) => !ownVersions.has(versionOf(one))),
    nameOf,
  )
  const changed: ImageComparison['changed'] = []
  for (const [name, after] of added) {
    const before = removed.get(name) ?? []
    // Packages with several versions are paired as far as possible.
    while (after.length > 0 && before.length > 0) {
      changed.push({ package: after.shift()!, baseVersion: before.shift()!.version })
    }
  }
  return { added: [...added.values()].flat(), removed: [...removed.values()].flat(), changed }
}

function countedIn(findings: readonly ShownFinding[], now: string): Map<string, ComparedVulnerability> {
  const byId = new Map<string, ShownFinding[]>()
  for (const one of findings) {
    for (const id of countedAt(one, now)) byId.set(id, [...(byId.get(id) ?? []), one])
  }
  const sorted = [...byId].sort(([one], [other]) => (one < other ? -1 : 1))
  return new Map(
    sorted.map(([vulnerability, those]) => {
      const severity = levelName(those.map((one) => one.severity).reduce(worse))
      const purls = [...new Set(those.map(({ purl }) => purl))].sort().slice(0, mostPurls)
      return [vulnerability, { vulnerability, severity, purls }]
    }),
  )
}
