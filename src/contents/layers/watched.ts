// Paths of files that list the packages of an image.

// Newer distributions have merged /lib into /usr/lib, with a link that is never followed here.
export const apkDatabases = ['lib/apk/db/installed', 'usr/lib/apk/db/installed']
export const osReleases = ['etc/os-release', 'usr/lib/os-release']
/** Repositories of Alpine from which packages are installed. */
export const apkRepositories = 'etc/apk/repositories'
const dpkgDatabase = 'var/lib/dpkg/status'
/** Images without dpkg itself have a file for each package here, beside files of checksums. */
const dpkgFolder = 'var/lib/dpkg/status.d/'
const databases = new Set([...apkDatabases, ...osReleases, apkRepositories, dpkgDatabase])
/** Folders in which distributions have the database of rpm. */
const rpmFolders = ['var/lib/rpm', 'usr/lib/sysimage/rpm', 'usr/share/rpm']
const rpmFiles = ['Packages', 'Packages.db', 'rpmdb.sqlite']
/** Lists of packages in images of Azure Linux without rpm itself; another with fewer fields is beside each. */
const rpmManifest = 'var/lib/rpmmanifest/container-manifest-2'
const rpmDatabases = new Set([
  rpmManifest,
  ...rpmFolders.flatMap((folder) => [...rpmFiles, 'rpmdb.sqlite-wal'].map((file) => `${folder}/${file}`)),
])

/** Paths of package databases. */
export const databasePaths: readonly string[] = [
  ...apkDatabases,
  dpkgDatabase,
  dpkgFolder.slice(0, -1),
  ...rpmDatabases,
]

/** Lists of the files that a package of dpkg owns. */
export const ownedFiles = /^var\/lib\/dpkg\/info\/([^/:]+)(?::[^/]+)?\.list$/

/**
 * `database`: kept, and read when all layers are known. `owned`: likewise, but only needed for the owners of packages of
 * languages. The other kinds are read immediately, and only the result is kept; `program` may be a binary built by Go.
 */
export type Watch = 'database' | 'owned' | 'rpm' | 'python' | 'npm' | 'gem' | 'java' | 'program'

const patterns: [watch: Watch, pattern: RegExp][] = [
  ['owned', ownedFiles],
  ['python', /(?:^|\/)[^/]+\.(?:dist-info\/METADATA|egg-info\/PKG-INFO|egg-info)$|(?:^|\/)EGG-INFO\/PKG-INFO$/],
  ['npm', /(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/@]+\/package\.json$/],
  ['gem', /(?:^|\/)specifications\/(?:default\/)?[^/]+\.gemspec$/],
  ['java', /\.(?:jar|war|ear|par|hpi|jpi)$/i],
]

/** Reader for a file of this path. */
export function watchOf(path: string): Watch {
  if (databases.has(path)) return 'database'
  if (rpmDatabases.has(path)) return 'rpm'
  if (path.startsWith(dpkgFolder)) {
    const name = path.slice(dpkgFolder.length)
    if (name !== '' && !name.includes('/') && !name.endsWith('.md5sums')) return 'database'
  }
  return patterns.find(([, pattern]) => pattern.test(path))?.[0] ?? 'program'
}
