// Maps package kinds and distributions to OSV ecosystems: https://ossf.github.io/osv-schema/#defined-ecosystems.
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

/**
 * The OSV ecosystem of a package, with the release of its distribution (`Alpine:v3.19`, `PyPI`). Empty if OSV has no ecosystem
 * for the package.
 */
export function ecosystemOf(kind: PackageKind, distribution: Distribution): string {
  return kinds[kind].ecosystem || distributionEcosystem(kind as DistributionKind, distribution)
}

/**
 * The OSV ecosystems of the packages of a distribution, one after the other. Empty if OSV has no ecosystem for the distribution.
 * Only Docker Hardened Images have two, for packages of Alpine and of Debian.
 */
export function ecosystemOfDistribution(distribution: Distribution): string {
  return distributionKinds.map((kind) => ecosystemOf(kind, distribution)).join('')
}

/**
 * True if advisories for one distribution apply to the other. Both must have the same ecosystem. Distributions without an
 * ecosystem must have the same id and version.
 */
export function isSameDistribution(one: Distribution, other: Distribution): boolean {
  const [first, second] = [one, other].map(ecosystemOfDistribution)
  return first === '' ? isSameId(one, other) && one.version === other.version : first === second
}

/**
 * True if the two names are of different distributions. A distribution without an id differs from none. A distribution without a
 * version differs only from distributions with other ids.
 */
export function isOtherDistribution(one: Distribution, other: Distribution): boolean {
  if (one.id === '' || other.id === '' || isSameDistribution(one, other)) return false
  if (!isSameId(one, other)) return !isSameFamily(one, other)
  // If neither release has an ecosystem, no advisory applies to it, so the releases are not compared.
  const isKnown = [one, other].some((it) => ecosystemOfDistribution(it) !== '')
  return isKnown && one.version !== '' && other.version !== ''
}

/** True if one of the two has no version, and both ids mean the same distribution, such as `rhel` and `redhat`. */
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
  return name?.kinds.includes(kind) ? name.of(version, kind) : ''
}

/** Package kind of a distribution's ecosystem, with or without a release. Undefined for any other ecosystem. */
export function kindOfEcosystem(ecosystem: string): DistributionKind | undefined {
  const [name = '', lineage = ''] = ecosystem.toLowerCase().split(':')
  if (rpmEcosystems.has(name)) return 'rpm'
  const known = name === hardened.toLowerCase() ? lineage : name.replaceAll(' ', '-')
  return Object.hasOwn(distributions, known) ? distributions[known]!.kinds[0] : undefined
}

/**
 * Ecosystems whose advisories apply to packages of an ecosystem: the ecosystem itself, its parts, and the ecosystem without a
 * release.
 */
export function withAllReleases(ecosystem: string): string[] {
  const end = ecosystem.indexOf(':')
  if (end < 0) return [ecosystem]
  const parts = [...partsOfRelease(ecosystem), ...ubuntuPro(ecosystem)]
  return [...new Set([ecosystem, ecosystem.slice(0, end), ...parts])]
}

const hardened = 'Docker Hardened Images'

type Naming = { kinds: readonly DistributionKind[]; of: (version: string, kind: DistributionKind) => string }
const apk = (of: Naming['of']): Naming => ({ kinds: ['apk'], of })
const deb = (of: Naming['of']): Naming => ({ kinds: ['deb'], of })

const distributions: Record<string, Naming> = {
  alpaquita: apk((version) => (version === '' ? '' : `Alpaquita:${version}`)),
  alpine: apk(alpine),
  'bellsoft-hardened-containers': apk((version) => (version === '' ? '' : `BellSoft Hardened Containers:${version}`)),
  chainguard: apk(() => 'Chainguard'),
  cleanstart: apk(() => 'CleanStart'),
  // Name in the os-release of CleanStart images.
  clnstrt: apk(() => 'CleanStart'),
  minimos: apk(() => 'MinimOS'),
  wolfi: apk(() => 'Wolfi'),
  debian: deb(debian),
  echo: deb(() => 'Echo'),
  ubuntu: deb(ubuntu),
  dhi: { kinds: ['apk', 'deb'], of: hardenedImages },
}

/** The packages are rebuilt packages of a release of Alpine or Debian. */
function hardenedImages(version: string, kind: DistributionKind): string {
  const [release] = /^\d+(?:\.\d+)?/.exec(version) ?? []
  return release === undefined ? '' : `${hardened}:${kind === 'apk' ? 'Alpine' : 'Debian'}:${release}`
}

/** Until its branch exists, the next release has a version such as 3.21_alpha and belongs to edge. */
function alpine(version: string): string {
  const [, release, alpha] = /^v?(\d+\.\d+)(?:\.\d+)*(_alpha)?/.exec(version) ?? []
  if (version === 'edge' || alpha !== undefined) return 'Alpine:edge'
  return release === undefined ? '' : `Alpine:v${release}`
}

/** Before release 9, versions had two numbers. For example, 7.11 belongs to release 7. */
function debian(version: string): string {
  if (version === 'sid') return 'Debian:sid'
  const [, release] = /^(\d+)(?:\.\d+)*$/.exec(version) ?? []
  return release === undefined ? '' : `Debian:${release}`
}

/** OSV adds LTS to the ecosystem of long-term support releases, which appear in April of every second year since 2008. */
function ubuntu(version: string): string {
  const [, year, month] = /^(\d+)\.(\d+)(?:\.\d+)*$/.exec(version) ?? []
  if (year === undefined) return ''
  const long = month === '04' && Number(year) % 2 === 0 && Number(year) >= 8
  return `Ubuntu:${year}.${month}${long ? ':LTS' : ''}`
}

/**
 * Ecosystem with the fixes that only subscribers of Ubuntu Pro get. The vulnerabilities exist without a subscription as well, and
 * after the end of standard support they are only in this ecosystem.
 */
function ubuntuPro(ecosystem: string): string[] {
  const [, release] = /^Ubuntu:(\d.*)$/.exec(ecosystem) ?? []
  return release === undefined ? [] : [`Ubuntu:Pro:${release}`]
}
