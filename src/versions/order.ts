// The order of versions, as each package manager defines it.
import { compareApk } from './apk.ts'
import { compareDeb } from './deb.ts'
import { compareGem } from './gem.ts'
import { compareMaven } from './maven.ts'
import { comparePep440, localLabel } from './pep440.ts'
import { compareRpm } from './rpm.ts'
import { compareSemver } from './semver.ts'

/** Below 0, 0 or above 0, like a comparator; undefined when one of the two is not a version. */
type Order = (one: string, other: string) => number | undefined

const orders = {
  apk: compareApk,
  deb: compareDeb,
  gem: compareGem,
  maven: compareMaven,
  pep440: comparePep440,
  rpm: compareRpm,
  semver: compareSemver,
} satisfies Record<string, Order>

export type Scheme = keyof typeof orders

const maxLength = 512

/** Below 0, 0 or above 0, like a comparator; undefined when one of the two is not a version. */
export function compareVersions(scheme: Scheme, one: string, other: string): number | undefined {
  if (one.length > maxLength || other.length > maxLength) return undefined
  return orders[scheme](one, other)
}

/**
 * Compares an installed version with one of an advisory or a query. The local label of a Python version counts only if the other
 * one has a label too: 2.0.1+cu118 equals 2.0.1, by the rules of PEP 440 for specifiers.
 */
export function compareInstalled(scheme: Scheme, installed: string, stated: string): number | undefined {
  const isPublic = scheme === 'pep440' && stated.length <= maxLength && localLabel(stated) === ''
  return compareVersions(scheme, isPublic ? installed.split('+', 1)[0]! : installed, stated)
}

/** By the ecosystems of OSV, https://ossf.github.io/osv-schema/#defined-ecosystems. */
const schemes = new Map<string, Scheme>([
  ['Alpaquita', 'apk'],
  ['Alpine', 'apk'],
  ['BellSoft Hardened Containers', 'apk'],
  ['Chainguard', 'apk'],
  ['MinimOS', 'apk'],
  ['Wolfi', 'apk'],
  ['Debian', 'deb'],
  ['Echo', 'deb'],
  ['Ubuntu', 'deb'],
  ['AlmaLinux', 'rpm'],
  ['Azure Linux', 'rpm'],
  ['Mageia', 'rpm'],
  ['openEuler', 'rpm'],
  ['openSUSE', 'rpm'],
  ['Red Hat', 'rpm'],
  ['Rocky Linux', 'rpm'],
  ['SUSE', 'rpm'],
  ['Go', 'semver'],
  ['Maven', 'maven'],
  ['PyPI', 'pep440'],
  ['RubyGems', 'gem'],
  ['crates.io', 'semver'],
  ['npm', 'semver'],
])

/**
 * Version scheme of an ecosystem of OSV, with or without its release (`Alpine:v3.19`). Returns undefined if we cannot order its
 * versions.
 */
export function schemeOf(ecosystem: string): Scheme | undefined {
  const colon = ecosystem.indexOf(':')
  return schemes.get(colon < 0 ? ecosystem : ecosystem.slice(0, colon))
}
