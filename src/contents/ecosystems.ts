// Names of package kinds and distributions in OSV: https://ossf.github.io/osv-schema/#defined-ecosystems.
import type { Scheme } from '#versions/order.ts'
import { type Distribution, type DistributionKind, distributionKinds, type PackageKind } from './packages.ts'
import { partsOfRelease, rpmDistributions, rpmEcosystems } from './rpm-distributions.ts'

const kinds: Record<PackageKind, { scheme: Scheme; ecosystem: string }> = {
  apk: { scheme: 'apk', ecosystem: '' },
  deb: { scheme: 'deb', ecosystem: '' },
  rpm: { scheme: 'rpm', ecosystem: '' },
  cargo: { scheme: 'semver', ecosystem: 'crates.io' },
  gem: { scheme: 'gem', ecosystem: 'RubyGems' },
  golang: { scheme: 'semver', ecosystem: 'Go' },
  maven: { scheme: 'maven', ecosystem: 'Maven' },
  npm: { scheme: 'semver', ecosystem: 'npm' },
  pypi: { scheme: 'pep440', ecosystem: 'PyPI' },
}

/** Version scheme of packages of this kind. */
export function schemeOfKind(kind: PackageKind): Scheme {
  return kinds[kind].scheme
}

/** The ecosystem of a package, with the release of its distribution (`Alpine:v3.19`, `PyPI`); empty where OSV has none for it. */
export function ecosystemOf(kind: PackageKind, distribution: Distribution): string {
  return kinds[kind].ecosystem || distributionEcosystem(kind as DistributionKind, distribution)
}

/** The ecosystem of the packages of a distribution itself; empty where OSV has none for it. */
export function ecosystemOfDistribution(distribution: Distribution): string {
  return distributionKinds.map((kind) => ecosystemOf(kind, distribution)).join('')
}

/**
 * True if advisories for one distribution apply to the other: both have the same ecosystem, so at most the last number of their
 * versions differs. If neither has an ecosystem, both need the same id and version.
 */
export function isSameDistribution(one: Distribution, other: Distribution): boolean {
  const [first, second] = [one, other].map(ecosystemOfDistribution)
  return first === '' ? isSameId(one, other) && one.version === other.version : first === second
}

/**
 * True if the two contradict each other. A distribution without an id contradicts none, and one without a version only other ids.
 */
export function isOtherDistribution(one: Distribution, other: Distribution): boolean {
  if (one.id === '' || other.id === '' || isSameDistribution(one, other)) return false
  if (!isSameId(one, other)) return !isSameFamily(one, other)
  // Releases that no ecosystem is named after are compared with nothing.
  const isKnown = [one, other].some((it) => ecosystemOfDistribution(it) !== '')
  return isKnown && one.version !== '' && other.version !== ''
}

/** True if one of them lacks the version, and both ids stand for the same distribution: `rhel` and `redhat`. */
function isSameFamily(one: Distribution, other: Distribution): boolean {
  if (one.version !== '' && other.version !== '') return false
  const version = one.version || other.version
  const [first, second] = [one, other].map(({ id }) => ecosystemOfDistribution({ id, version }))
  return first !== '' && first === second
}

const isSameId = ({ id }: Distribution, other: Distribution): boolean => id.toLowerCase() === other.id.toLowerCase()

function distributionEcosystem(kind: DistributionKind, { id, version }: Distribution): string {
  const known = id.toLowerCase()
  if (kind === 'rpm') return Object.hasOwn(rpmDistributions, known) ? rpmDistributions[known]!(version) : ''
  const name = Object.hasOwn(distributions, known) ? distributions[known] : undefined
  return name?.kind === kind ? name.of(version) : ''
}

/** Kind of packages of an ecosystem that is a distribution, with a release or without; undefined for any other ecosystem. */
export function kindOfEcosystem(ecosystem: string): DistributionKind | undefined {
  const name = ecosystem.split(':')[0]!.toLowerCase()
  if (rpmEcosystems.has(name)) return 'rpm'
  return Object.hasOwn(distributions, name) ? distributions[name]!.kind : undefined
}

/**
 * Ecosystems whose advisories apply to packages of an ecosystem: itself, its parts, and the ecosystem for all releases if it has
 * releases.
 */
export function withAllReleases(ecosystem: string): string[] {
  const end = ecosystem.indexOf(':')
  return end < 0 ? [ecosystem] : [...new Set([ecosystem, ecosystem.slice(0, end), ...partsOfRelease(ecosystem)])]
}

const distributions: Record<string, { kind: DistributionKind; of: (version: string) => string }> = {
  alpaquita: { kind: 'apk', of: (version) => (version === '' ? '' : `Alpaquita:${version}`) },
  alpine: { kind: 'apk', of: alpine },
  chainguard: { kind: 'apk', of: () => 'Chainguard' },
  minimos: { kind: 'apk', of: () => 'MinimOS' },
  wolfi: { kind: 'apk', of: () => 'Wolfi' },
  debian: { kind: 'deb', of: debian },
  ubuntu: { kind: 'deb', of: ubuntu },
}

/** Before its branch exists, a release has the version 3.21_alpha, and belongs to edge. */
function alpine(version: string): string {
  const [, release, alpha] = /^v?(\d+\.\d+)(?:\.\d+)*(_alpha)?/.exec(version) ?? []
  if (version === 'edge' || alpha !== undefined) return 'Alpine:edge'
  return release === undefined ? '' : `Alpine:v${release}`
}

/** Before version 9, numbers of releases had two parts, such as 7.11, which belongs to release 7. */
function debian(version: string): string {
  const [, release] = /^(\d+)(?:\.\d+)*$/.exec(version) ?? []
  return release === undefined ? '' : `Debian:${release}`
}

/** Releases with long-term support have LTS in the name of their ecosystem: every other April since 2008. */
function ubuntu(version: string): string {
  const [, year, month] = /^(\d+)\.(\d+)(?:\.\d+)*$/.exec(version) ?? []
  if (year === undefined) return ''
  const long = month === '04' && Number(year) % 2 === 0 && Number(year) >= 8
  return `Ubuntu:${year}.${month}${long ? ':LTS' : ''}`
}
