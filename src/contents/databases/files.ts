// Reads the packages of an image from its package databases and package files.

import { apkDatabases, apkRepositories, osReleases, ownedFiles } from '../layers/watched.ts'
import { GapList, type ImageContents, type ImageFile, type Package, PackageList, Unreadable } from '../packages.ts'
import { readApkDatabase } from './apk-database.ts'
import { readDpkgDatabase } from './dpkg-database.ts'
import type { Entry } from './entry.ts'
import { linesOf } from './lines.ts'
import { onBranch, readOsRelease } from './os-release.ts'
import { Owners } from './owners.ts'

/**
 * Reads the packages in these files. Returns undefined if none of the files is a package database or a package file. Then the
 * packages are unknown, which differs from an image without packages.
 */
export function readFiles(files: readonly ImageFile[]): ImageContents | undefined {
  const texts = new Map<string, string>()
  for (const { path, bytes, found } of files) if (!found) texts.set(path, new TextDecoder().decode(bytes))
  const list = new PackageList()
  const owners = new Owners(files.flatMap(({ path, found }) => (found ? [path] : [])))
  const gaps = new GapList()
  let [databases, entries] = [0, 0]
  for (const [path, text] of texts) {
    const reading = entriesOf(path, text, owners)
    if (!reading) continue
    databases++
    for (const entry of reading) {
      entries++
      if ('package' in entry) list.add(entry.package)
      else gaps.add(path, entry.gap.reason, entry.gap.message)
    }
  }
  for (const { path, found } of files) {
    if (!found?.isDatabase) continue
    databases++
    entries += found.packages.length + found.gaps.length
    addAll(path, found.packages, { list, gaps })
    for (const [file, name] of found.owned ?? []) owners.add(file, 'rpm', name)
  }
  const packages = list.sorted()
  for (const [path, text] of texts) {
    const owner = ownedFiles.exec(path)?.[1]
    if (owner !== undefined) for (const line of linesOf(text)) owners.add(line.slice(1), 'deb', owner)
  }
  const known = addLanguages(files, { list, gaps, owners: owners.among(packages) })
  const osRelease = osReleases.map((path) => texts.get(path)).find((text) => text !== undefined)
  const distribution = onBranch(readOsRelease(osRelease ?? ''), texts.get(apkRepositories) ?? '')
  if (databases === 0 && !known && distribution.id === '') return undefined
  if (databases > 0 && entries === 0 && distribution.id !== '') {
    gaps.add('', 'UNIDENTIFIED', `the package database of ${distribution.id} has no entries`)
  }
  return { packages: list.sorted(), distribution, hasDatabase: databases > 0, gaps: gaps.all() }
}

/** Entries of a package database. Undefined if the file is no package database. */
function entriesOf(path: string, text: string, owners: Owners): Iterable<Entry> | undefined {
  if (apkDatabases.includes(path)) return readApkDatabase(text, owners)
  const isOther = path === apkRepositories || osReleases.includes(path) || ownedFiles.test(path)
  return isOther ? undefined : readDpkgDatabase(text)
}

type Gathered = { list: PackageList; gaps: GapList; owners: ReturnType<Owners['among']> }

/** Adds the packages from package files of languages. Returns true if there was such a file. */
function addLanguages(files: readonly ImageFile[], { list, gaps, owners }: Gathered): boolean {
  let any = false
  let isFull = false
  for (const { path, found } of files) {
    if (!found) continue
    any = true
    const owner = owners(path)
    for (const { path: where, reason, message } of found.gaps) {
      // If a distribution package owns the file, that package identifies the file. So an unidentified file with an owner is no
      // gap.
      if (reason !== 'UNIDENTIFIED' || !owner) gaps.add(where, reason, message)
    }
    if (isFull || found.isDatabase) continue
    const packages = owner ? found.packages.map((one) => ({ ...one, owner })) : found.packages
    isFull = !addAll(path, packages, { list, gaps })
  }
  return any
}

/** Adds packages of a file. Returns false if the limit on packages is reached. */
function addAll(path: string, packages: readonly Package[], { list, gaps }: Pick<Gathered, 'list' | 'gaps'>): boolean {
  try {
    for (const one of packages) list.add(one)
    return true
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    gaps.add(path, error.reason, error.message)
    return false
  }
}
