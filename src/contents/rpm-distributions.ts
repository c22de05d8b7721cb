// OSV names of rpm distributions, and the ecosystems that contain the advisories of one release.

/**
 * Functions that map a version to the OSV ecosystem, by the `ID` of os-release. The ecosystem is empty if OSV has none for the
 * version.
 */
export const rpmDistributions: Readonly<Record<string, (version: string) => string>> = {
  almalinux: (version) => release('AlmaLinux', major(version)),
  // Trivy has other names for two distributions.
  alma: (version) => release('AlmaLinux', major(version)),
  'cbl-mariner': (version) => release('Azure Linux', major(version)),
  azurelinux: (version) => release('Azure Linux', major(version)),
  // Name of Azure Linux before release 3.
  mariner: (version) => release('Azure Linux', major(version)),
  mageia: (version) => release('Mageia', major(version)),
  openeuler: (version) => release('openEuler', openEuler(version)),
  // Name of openSUSE Leap 42.
  opensuse: (version) => release('openSUSE', withWord('Leap', version)),
  'opensuse-leap': (version) => release('openSUSE', withWord('Leap', version)),
  'opensuse-leap-micro': (version) => release('openSUSE', withWord('Leap Micro', version)),
  'opensuse-tumbleweed': () => 'openSUSE:Tumbleweed',
  redhat: (version) => release('Red Hat', redHat(version)),
  rhel: (version) => release('Red Hat', redHat(version)),
  rocky: (version) => release('Rocky Linux', major(version)),
  sled: (version) => release('SUSE', withWord('Linux Enterprise Desktop', servicePack(version))),
  sles: (version) => release('SUSE', withWord('Linux Enterprise Server', servicePack(version))),
  sles_sap: (version) =>
    release('SUSE', withWord('Linux Enterprise Server for SAP Applications', servicePack(version))),
  sle_hpc: (version) => release('SUSE', withWord('Linux Enterprise High Performance Computing', servicePack(version))),
  'sle-micro': (version) => release('SUSE', withWord('Linux Enterprise Micro', version)),
  'sl-micro': (version) => release('SUSE', withWord('Linux Micro', version)),
}

/** Ecosystems of OSV without a release. */
export const rpmEcosystems: ReadonlySet<string> = new Set([
  ...['almalinux', 'azure linux', 'mageia', 'openeuler', 'opensuse', 'red hat', 'rocky linux', 'suse'],
])

const release = (ecosystem: string, version: string): string => (version === '' ? '' : `${ecosystem}:${version}`)
const major = (version: string): string => /^\d+/.exec(version)?.[0] ?? ''
const withWord = (word: string, version: string): string => (version === '' ? '' : `${word} ${version}`)

/**
 * Ecosystem of an openEuler version. Empty for a version without `LTS`: OSV has only releases with long-term support, and each of
 * their service packs has a separate ecosystem.
 */
function openEuler(version: string): string {
  const isLong = /^\d+\.\d+-lts(?:-sp\d+)?$/i.test(version)
  return isLong ? version.toUpperCase() : ''
}

const isLongOpenEuler = (year: string | undefined, month: string | undefined): boolean =>
  month === '03' && Number(year) % 2 === 0

/** The openEuler release that a package was built for, from the end of its version: `.oe2203sp3`. */
export function openEulerOf(version: string): string | undefined {
  const [, year, month, pack] = /\.oe(\d\d)(\d\d)(sp\d+)?$/.exec(version) ?? []
  if (year === undefined) return undefined
  const long = isLongOpenEuler(year, month) ? '-LTS' : ''
  return `${year}.${month}${long}${pack === undefined ? '' : `-${pack.toUpperCase()}`}`
}

/** Product name in a CPE. Since release 10, the name contains the minor release. */
function redHat(version: string): string {
  const [, first = '', second] = /^(\d+)(?:\.(\d+))?/.exec(version) ?? []
  if (first === '') return ''
  return `enterprise_linux:${Number(first) >= 10 ? `${first}.${second ?? '0'}` : first}`
}

/** Converts 15.5 to 15 SP5. Since version 16, there are no service packs. */
function servicePack(version: string): string {
  const [, first = '', second = '0'] = /^(\d+)(?:\.(\d+))?$/.exec(version) ?? []
  if (first === '' || Number(first) >= 16) return version
  return second === '0' ? first : `${first} SP${second}`
}

const redHatParts = [
  ...['appstream', 'baseos', 'client', 'computenode', 'crb', 'highavailability', 'nfv', 'realtime'],
  ...['resilientstorage', 'sap', 'sap_hana', 'server', 'supplementary', 'workstation'],
]
const suseModules = [
  ...['Basesystem', 'Certifications', 'Containers', 'Desktop Applications', 'Development Tools', 'Legacy'],
  ...['Public Cloud', 'Python 3', 'Server Applications', 'Web and Scripting'],
]
/** Modules of version 12 of the distribution. Their names contain no service pack. */
const suseModules12 = [
  ...['Advanced Systems Management', 'Certifications', 'Containers', 'Legacy', 'Public Cloud', 'Toolchain'],
  'Web and Scripting',
]
const lastMinor = 10

/**
 * Other ecosystems with advisories for a release. Red Hat has an ecosystem for each part of a release. For release 10, it also
 * has one for each minor release with a fix. `SUSE` has one for each module.
 */
export function partsOfRelease(ecosystem: string): string[] {
  const [, redHatRelease, minors] = /^Red Hat:(enterprise_linux:(\d+)(?:\.\d+)?)$/.exec(ecosystem) ?? []
  if (redHatRelease !== undefined && Number(minors) < 10) return redHatParts.map((part) => `${ecosystem}::${part}`)
  if (redHatRelease !== undefined) {
    return Array.from({ length: lastMinor + 1 }, (_, i) => `Red Hat:enterprise_linux:${minors}.${i}`)
  }
  if (/^openSUSE:Leap \d+\.\d+$/.test(ecosystem)) return [`${ecosystem} NonFree`]
  const [, product, pack] = suseProduct.exec(ecosystem) ?? []
  if (product === undefined || pack === undefined) return []
  const [names, release] = pack.startsWith('12') ? [suseModules12, '12'] : [suseModules, pack]
  const modules = names.map((module) => `SUSE:Linux Enterprise Module for ${module} ${release}`)
  const server = `SUSE:Linux Enterprise Server ${pack}`
  const extended = `SUSE:Linux Enterprise Server LTSS Extended Security ${pack}`
  const computing = product === highPerformance ? [`${ecosystem}-ESPOS`, `${ecosystem}-LTSS`] : []
  return [...modules, server, `${server}-LTSS`, extended, ...computing]
}

const highPerformance = 'High Performance Computing'
const suseProduct =
  /^SUSE:Linux Enterprise (Server|Desktop|Server for SAP Applications|High Performance Computing) (1[0-5](?: SP\d+)?)$/
