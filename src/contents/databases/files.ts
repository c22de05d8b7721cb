// How the files that say what is installed are read, once it is known which of them an image has.

import { apkDatabases, apkRepositories, osReleases, ownedFiles } from '../layers/watched.ts'
import { GapList, type ImageContents, type ImageFile, PackageList, Unreadable } from '../packages.ts'
import { readApkDatabase } from './apk-database.ts'
import { readDpkgDatabase } from './dpkg-database.ts'
import { linesOf } from './lines.ts'
import { onBranch, readOsRelease } from './os-release.ts'
import { Owners } from './owners.ts'

/** Undefined when the files say nothing of packages: then nothing is known, which is not the same as nothing installed. */
export function readFiles(files: readonly ImageFile[]): ImageContents | undefined {
  const texts = new Map<string, string>()
  for (const { path, bytes, found } of files) if (!found) texts.set(path, new TextDecoder().decode(bytes))
  const list = new PackageList()
  const owners = new Owners(files.flatMap(({ path, found }) => (found ? [path] : [])))
  let databases = 0
  for (const [path, text] of texts) {
    if (apkDatabases.includes(path)) readApkDatabase(text, list, owners)
    else if (path !== apkRepositories && !osReleases.includes(path) && !ownedFiles.test(path))
      readDpkgDatabase(text, list)
    else continue
    databases++
  }
  const packages = list.sorted()
  for (const [path, text] of texts) {
    const owner = ownedFiles.exec(path)?.[1]
    if (owner !== undefined) for (const line of linesOf(text)) owners.add(line.slice(1), 'deb', owner)
  }
  const gaps = new GapList()
  const known = addLanguages(files, { list, gaps, owners: owners.among(packages) })
  if (databases === 0 && !known) return undefined
  const osRelease = osReleases.map((path) => texts.get(path)).find((text) => text !== undefined)
  return {
    packages: list.sorted(),
    distribution: onBranch(readOsRelease(osRelease ?? ''), texts.get(apkRepositories) ?? ''),
    hasDatabase: databases > 0,
    gaps: gaps.all(),
  }
}

type Gathered = { list: PackageList; gaps: GapList; owners: ReturnType<Owners['among']> }

/** Whether there was anything. */
function addLanguages(files: readonly ImageFile[], { list, gaps, owners }: Gathered): boolean {
  let any = false
  let isFull = false
  for (const { path, found } of files) {
    if (!found) continue
    any = true
    const owner = owners(path)
    for (const { path: where, reason, message } of found.gaps) {
      // Of what does not say what it is the package says it that it belongs to.
      if (reason !== 'UNIDENTIFIED' || !owner) gaps.add(where, reason, message)
    }
    for (const one of found.packages) {
      if (isFull) continue
      try {
        list.add(owner ? { ...one, owner } : one)
      } catch (error) {
        if (!(error instanceof Unreadable)) throw error
        isFull = true
        gaps.add(path, error.reason, error.message)
      }
    }
  }
  return any
}
