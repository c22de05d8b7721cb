// Joins the contents of one image from several sources, such as layers and SBOMs.
import { GapList, type ImageContents, type Package, PackageList, Unreadable } from './packages.ts'

/**
 * Joins packages and gaps of all sources. A package is included if any source has it. Two entries with the same name and version
 * become one package with the properties of the first entry.
 */
export function joinContents(all: readonly ImageContents[]): ImageContents {
  const list = new PackageList()
  const gaps = new GapList()
  const named = new Set<string>()
  for (const { packages, gaps: some } of all) {
    for (const { path, reason, message } of some) gaps.add(path, reason, message)
    const keys = packages.map(keyOf)
    try {
      for (const [i, one] of packages.entries()) if (!named.has(keys[i]!)) list.add(one)
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error
      gaps.add('', error.reason, error.message)
    }
    for (const key of keys) named.add(key)
  }
  const distribution = all.find((one) => one.distribution.id !== '')?.distribution ?? { id: '', version: '' }
  const hasDatabase = all.some((one) => one.hasDatabase)
  return { packages: list.sorted(), distribution, hasDatabase, gaps: gaps.all() }
}

/** Adds a gap if the image has a distribution but no database of the distribution's packages. */
export function withMissingDatabase(contents: ImageContents): ImageContents {
  const { distribution, hasDatabase } = contents
  if (distribution.id === '' || hasDatabase) return contents
  const gaps = new GapList()
  gaps.add('', 'UNIDENTIFIED', `no package database of ${distribution.id} could be read`)
  for (const { path, reason, message } of contents.gaps) gaps.add(path, reason, message)
  return { ...contents, gaps: gaps.all() }
}

/** Go module names are compared in lower case, because package URLs have lower case and binaries do not. */
const keyOf = ({ kind, name, version }: Package): string =>
  `${kind}\0${kind === 'golang' ? name.toLowerCase() : name}\0${version}`
