// Which files of an image say what is installed in it, and how each is read.
import { readApkDatabase } from './apk-database.ts'
import { readDpkgDatabase } from './dpkg-database.ts'
import { readOsRelease } from './os-release.ts'
import { type ImageContents, type ImageFile, PackageList } from './packages.ts'

// Newer distributions have merged /lib into /usr/lib, with a link that is never followed here.
const apkDatabases = ['lib/apk/db/installed', 'usr/lib/apk/db/installed']
const osReleases = ['etc/os-release', 'usr/lib/os-release']
const dpkgDatabase = 'var/lib/dpkg/status'
/** Images without dpkg itself have a file for each package here, beside files of checksums. */
const dpkgFolder = 'var/lib/dpkg/status.d'

const files = new Set([...apkDatabases, ...osReleases, dpkgDatabase])
const folders = new Set([...files, `${dpkgFolder}/x`].flatMap(foldersOf))

function foldersOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, i) => parts.slice(0, i + 1).join('/'))
}

/** Whether a file of this path is read. */
export function isWatched(path: string): boolean {
  if (files.has(path)) return true
  const [folder, name] = [path.slice(0, dpkgFolder.length + 1), path.slice(dpkgFolder.length + 1)]
  return folder === `${dpkgFolder}/` && name !== '' && !name.includes('/') && !name.endsWith('.md5sums')
}

/** Whether a file that is read can be below this path. */
export function isFolderOfWatched(path: string): boolean {
  return folders.has(path)
}

/** Undefined when the files say nothing of packages: then nothing is known, which is not the same as nothing installed. */
export function readFiles(found: readonly ImageFile[]): ImageContents | undefined {
  const texts = new Map(found.map(({ path, bytes }) => [path, new TextDecoder().decode(bytes)]))
  const list = new PackageList()
  let databases = 0
  for (const [path, text] of texts) {
    if (apkDatabases.includes(path)) readApkDatabase(text, list)
    else if (!osReleases.includes(path)) readDpkgDatabase(text, list)
    else continue
    databases++
  }
  if (databases === 0) return undefined
  const osRelease = osReleases.map((path) => texts.get(path)).find((text) => text !== undefined)
  return { packages: list.sorted(), distribution: readOsRelease(osRelease ?? ''), hasDatabase: true, gaps: [] }
}
