// Paths of the files that list the packages of an image.

// Newer distributions have merged /lib into /usr/lib, and /lib is a link. Links are not followed, so both paths are read.
export const apkDatabases = ['lib/apk/db/installed', 'usr/lib/apk/db/installed']
export const osReleases = ['etc/os-release', 'usr/lib/os-release']
/** File with the Alpine repositories from which packages are installed. */
export const apkRepositories = 'etc/apk/repositories'
const dpkgDatabase = 'var/lib/dpkg/status'
/** Images without dpkg have a file for each package in this folder, and next to it a file with checksums. */
const dpkgFolder = 'var/lib/dpkg/status.d/'
const databases = new Set([...apkDatabases, ...osReleases, apkRepositories, dpkgDatabase])
/** Folders in which distributions have the database of rpm. */
const rpmFolders = ['var/lib/rpm', 'usr/lib/sysimage/rpm', 'usr/share/rpm']
const rpmFiles = ['Packages', 'Packages.db']
/** SQLite database of rpm, and the files in which SQLite has transactions that are not in the database. */
const sqliteFiles = ['rpmdb.sqlite', 'rpmdb.sqlite-wal', 'rpmdb.sqlite-journal']
/** Package lists in Azure Linux images without rpm. Next to each is another list with fewer fields. */
const rpmManifest = 'var/lib/rpmmanifest/container-manifest-2'
const inRpmFolders = (files: readonly string[]): string[] =>
  rpmFolders.flatMap((folder) => files.map((file) => `${folder}/${file}`))
const rpmDatabases = new Set([rpmManifest, ...inRpmFolders(rpmFiles)])
const sqliteDatabases = new Set(inRpmFolders(sqliteFiles))

/** Paths of package databases. */
export const databasePaths: readonly string[] = [
  ...apkDatabases,
  dpkgDatabase,
  dpkgFolder.slice(0, -1),
  ...rpmDatabases,
  ...sqliteDatabases,
]

/** Lists of the files that a package of dpkg owns. */
export const ownedFiles = /^var\/lib\/dpkg\/info\/([^/:]+)(?::[^/]+)?\.list$/

/**
 * Ways to read a file. `database`: the file is stored, and read after the last layer. `sqlite`: likewise, together with its log,
 * which another layer can contain. `owned`: likewise, but the file only shows which package owns other files. All other kinds are
 * read at once, and only their packages are stored. `program`: the file may be a binary that Go has built.
 */
export type Watch = 'database' | 'sqlite' | 'owned' | 'rpm' | 'python' | 'npm' | 'gem' | 'java' | 'program'

const patterns: [watch: Watch, pattern: RegExp][] = [
  ['owned', ownedFiles],
  ['python', /(?:^|\/)[^/]+\.(?:dist-info\/METADATA|egg-info\/PKG-INFO|egg-info)$|(?:^|\/)EGG-INFO\/PKG-INFO$/],
  ['npm', /(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/@]+\/package\.json$/],
  ['gem', /(?:^|\/)specifications\/(?:default\/)?[^/]+\.gemspec$/],
  ['java', /\.(?:jar|war|ear|par|hpi|jpi)$/i],
]

/** Way to read a file with this path. */
export function watchOf(path: string): Watch {
  if (databases.has(path)) return 'database'
  if (rpmDatabases.has(path)) return 'rpm'
  if (sqliteDatabases.has(path)) return 'sqlite'
  if (path.startsWith(dpkgFolder)) {
    const name = path.slice(dpkgFolder.length)
    if (name !== '' && !name.includes('/') && !name.endsWith('.md5sums')) return 'database'
  }
  return patterns.find(([, pattern]) => pattern.test(path))?.[0] ?? 'program'
}
