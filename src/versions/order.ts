// Version orders of all supported package managers.
import { compareApk } from './apk.ts'
import { compareDeb } from './deb.ts'
import { compareGem } from './gem.ts'
import { compareMaven } from './maven.ts'
import { comparePep440, localLabel } from './pep440.ts'
import { compareRpm } from './rpm.ts'
import { compareSemver } from './semver.ts'

/** Returns a number below 0, 0 or above 0. Undefined if one of the two is not a version. */
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

/** Compares two versions. Returns a number below 0, 0 or above 0. Undefined if one of the two is not a version. */
export function compareVersions(scheme: Scheme, one: string, other: string): number | undefined {
  if (one.length > maxLength || other.length > maxLength) return undefined
  return orders[scheme](one, other)
}

/**
 * Compares an installed version with a version in an advisory or a query. If only the installed Python version has a local label,
 * the label is ignored: 2.0.1+cu118 equals 2.0.1. PEP 440 defines this for version specifiers.
 */
export function compareInstalled(scheme: Scheme, installed: string, stated: string): number | undefined {
  const isPublic = scheme === 'pep440' && stated.length <= maxLength && localLabel(stated) === ''
  return compareVersions(scheme, isPublic ? installed.split('+', 1)[0]! : installed, stated)
}

/** Version schemes by OSV ecosystem, https://ossf.github.io/osv-schema/#defined-ecosystems. */
const schemes = new Map<string, Scheme>([
  ['Alpaquita', 'apk'],
  ['Alpine', 'apk'],
  ['BellSoft Hardened Containers', 'apk'],
  ['Chainguard', 'apk'],
  ['CleanStart', 'apk'],
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
 * Version scheme of an OSV ecosystem, with or without its release (`Alpine:v3.19`). Returns undefined if versions of the
 * ecosystem cannot be compared.
 */
export function schemeOf(ecosystem: string): Scheme | undefined {
  const [name = '', lineage] = ecosystem.split(':', 2)
  // The packages are rebuilt packages of Alpine or Debian.
  return schemes.get(name === 'Docker Hardened Images' && lineage !== undefined ? lineage : name)
}
