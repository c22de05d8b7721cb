// Known data sources with their addresses and licenses.
import type { SourceFacts } from '#domains/scanning/records/records.model.ts'

/** Kinds of data sources. `kev` and `epss` have exploitation data, the others have records. */
export type SourceKind = 'osv' | 'secdb' | 'debian' | 'kev' | 'epss'

export type Source = SourceFacts & {
  kind: SourceKind
  /** True if the license allows other people than the operator to publish the data in a bundle. */
  mayBundle: boolean
}

/** Licenses of the databases that OSV combines, by ecosystem. The licenses of other ecosystems are unknown. */
const osvLicences: Readonly<Record<string, string>> = {
  PyPI: 'CC-BY-4.0',
  npm: 'CC-BY-4.0',
  Go: 'CC-BY-4.0',
  Maven: 'CC-BY-4.0',
  RubyGems: 'CC-BY-4.0',
  NuGet: 'CC-BY-4.0',
  Packagist: 'CC-BY-4.0',
  'crates.io': 'CC0-1.0',
  Ubuntu: 'CC-BY-SA-4.0',
  Chainguard: 'CC-BY-NC-ND-4.0',
  Wolfi: 'CC-BY-NC-ND-4.0',
}

/** Name in the settings for the data sources of `neededSources`. */
export const automatic = 'auto'

/** Data sources that are read if the settings name none, and no server knows which ones its images need. */
export const usualSources: readonly string[] = [
  ...['osv/PyPI', 'osv/npm', 'osv/Go', 'osv/Maven', 'osv/RubyGems', 'osv/crates.io', 'osv/Alpine', 'osv/Debian'],
]

/**
 * Names of the data sources for packages of these ecosystems, with exploitation data. Empty without ecosystems. A database of OSV
 * contains all releases of a distribution.
 */
export function neededSources(ecosystems: Iterable<string>): string[] {
  const databases = new Set([...ecosystems].map((one) => one.split(':')[0]!).filter((one) => one !== ''))
  return databases.size === 0 ? [] : [...[...databases].sort().map((one) => `osv/${one}`), 'epss', 'kev']
}

/** Replaces `auto` in names of data sources. */
export const withNeeded = (names: readonly string[], needed: readonly string[]): string[] => [
  ...new Set(names.flatMap((name) => (name === automatic ? needed : [name]))),
]

const osvHost = 'https://osv-vulnerabilities.storage.googleapis.com/'
const alpineHost = 'https://secdb.alpinelinux.org/'
const kevUrl = 'https://www.cisa.gov/sites/default/files/feeds/known_exploited_vulnerabilities.json'
const epssUrl = 'https://epss.empiricalsecurity.com/epss_scores-current.csv.gz'
const debianUrl = 'https://security-tracker.debian.org/tracker/data/json'

/**
 * Finds a data source by name: `osv/PyPI`, `secdb/v3.20/main`, `debian-tracker`, `kev` or `epss`. Returns undefined for another
 * name. A mirror has the same paths below `osv/`, `secdb/`, `debian-tracker`, `kev.json` and `epss.csv.gz`.
 */
export function sourceNamed(name: string, mirror: string): Source | undefined {
  const [kind, ...rest] = name.split('/')
  const what = rest.join('/')
  if (kind === 'osv' && /^[A-Za-z][\w .:()-]{0,63}$/.test(what)) {
    const licence = Object.hasOwn(osvLicences, what) ? osvLicences[what]! : 'unknown'
    const base = mirror === '' ? osvHost : `${mirror}osv/`
    const url = `${base}${encodeURIComponent(what)}/`
    return { name, kind: 'osv', url, licence, ecosystems: [what], mayBundle: !licence.includes('-NC') }
  }
  const [, branch] = /^(v\d+\.\d+|edge)\/(?:main|community)$/.exec(what) ?? []
  if (kind === 'secdb' && branch !== undefined) {
    const url = `${mirror === '' ? alpineHost : `${mirror}secdb/`}${what}.json`
    return { name, kind: 'secdb', url, licence: 'CC-BY-SA-4.0', ecosystems: [`Alpine:${branch}`], mayBundle: true }
  }
  const of = (path: string, own: string) => (mirror === '' ? own : `${mirror}${path}`)
  if (name === 'kev') {
    return { name, kind: 'kev', url: of('kev.json', kevUrl), licence: 'CC0-1.0', ecosystems: [], mayBundle: true }
  }
  if (name === 'epss') {
    return { name, kind: 'epss', url: of('epss.csv.gz', epssUrl), licence: 'unknown', ecosystems: [], mayBundle: false }
  }
  if (name === 'debian-tracker') {
    return {
      name,
      kind: 'debian',
      url: of('debian-tracker', debianUrl),
      licence: 'unknown',
      ecosystems: ['Debian'],
      mayBundle: false,
    }
  }
  return undefined
}

/**
 * Data sources that together cover the same release as the given one, including the given one. For Alpine, each repository is a
 * data source.
 */
export function partsWith(name: string): string[] {
  const [, branch, minor] = /^secdb\/(v3\.(\d+)|edge)\/(?:main|community)$/.exec(name) ?? []
  // Before Alpine 3.3, there was no second repository.
  if (branch === undefined || Number(minor ?? '3') < 3) return [name]
  return [`secdb/${branch}/community`, `secdb/${branch}/main`]
}
