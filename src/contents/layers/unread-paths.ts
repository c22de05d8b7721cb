// Paths that may list packages but are not read. These are databases of other package managers, and databases behind a link.
import type { Gap } from '../packages.ts'
import { ImageTree } from './image-tree.ts'
import { databasePaths, osReleases } from './watched.ts'

/**
 * Package managers whose databases are not read. In each pattern, the first group is the path of the database, and the whole
 * match is the path of one package.
 */
const managers: [name: string, entry: RegExp][] = [
  ['pacman', /^(var\/lib\/pacman\/local)\/[^/]+\/desc$/],
  ['conda', /^((?:.+\/)?conda-meta)\/[^/]+\.json$/],
  ['Nix', /^(nix\/store)\/[^/.][^/]+/],
  ['Guix', /^(gnu\/store)\/[^/.][^/]+/],
  ['Homebrew', /^((?:.+\/)?Cellar)\/[^/]+\/[^/]+\/INSTALL_RECEIPT\.json$/],
  ['opkg', /^((?:usr|var)\/lib\/opkg)\/info\/[^/]+\.control$/],
  ['Portage', /^(var\/db\/pkg)\/[^/]+\/[^/]+\/PF$/],
  ['xbps', /^(var\/db\/xbps)\/pkgdb-[^/]+\.plist$/],
]

/** Folders that can be links in any distribution. A link in place of any other folder in the path of a database causes a gap. */
const general = new Set(['etc', 'lib', 'usr', 'usr/lib', 'usr/lib/sysimage', 'usr/share', 'var', 'var/lib'])
const linkFolders = new Set(
  [...databasePaths, ...osReleases].flatMap((path) => {
    const parts = path.split('/')
    return parts.map((_, i) => parts.slice(0, i + 1).join('/')).filter((folder) => !general.has(folder))
  }),
)

/** Limits on the stored path of an entry, in parts and in characters. */
const maxParts = 64
const maxPath = 512
/** Part that no real path contains. It stands for all paths beyond the limit. */
const deepPath = '\0'

type Link = { name: string; isHard: boolean }

/** Entries that cause gaps, in their state after each layer. */
export class UnreadPaths {
  readonly #entries = new ImageTree<{ database: string; manager: string }>()
  readonly #links = new ImageTree<Link>()
  readonly #most: number

  constructor(most: number) {
    this.#most = most
  }

  get trees(): ImageTree<unknown>[] {
    return [this.#entries as ImageTree<unknown>, this.#links as ImageTree<unknown>]
  }

  /** Records an entry of the layer. */
  note(path: string, type: string, linkName: string): void {
    for (const [manager, pattern] of managers) {
      const [entry, database] = pattern.exec(path) ?? []
      if (entry === undefined || database === undefined || this.#entries.leaves >= this.#most) continue
      const parts = entry.split('/', maxParts + 1)
      const isDeep = parts.length > maxParts || entry.length > maxPath
      // One stored entry stands for all entries that are deeper than the limit, so that memory is limited.
      if (isDeep) this.#entries.set([deepPath, manager], { database: '', manager }, 0)
      else this.#entries.set(parts, { database, manager }, 0)
    }
    if ((type !== 'symlink' && type !== 'link') || !linkFolders.has(path)) return
    this.#links.set(path.split('/'), { name: linkName, isHard: type === 'link' }, 0)
  }

  /** Gaps of the image. `paths` contains the files that are read. */
  gaps(paths: readonly string[]): Gap[] {
    const counts = Map.groupBy([...this.#entries.visible()], ([, { database, manager }]) => `${database} ${manager}`)
    const unread = [...counts.values()].map((entries): Gap => {
      const { database: path, manager } = entries[0]![1]
      const count = path === '' ? 'some in deeply nested folders' : entries.length
      return { path, reason: 'UNSUPPORTED', message: `packages of ${manager} are not supported: ${count}` }
    })
    return [...unread, ...this.#linkGaps(paths)]
  }

  #linkGaps(paths: readonly string[]): Gap[] {
    const links = [...this.#links.visible()]
    const linked = new Set(links.map(([path]) => path))
    const hasRelease = paths.some((path) => osReleases.includes(path))
    return links.flatMap(([path, link]): Gap[] => {
      const target = targetOf(path, link)
      const isThere = paths.some((one) => one === target || one.startsWith(`${target}/`))
      if (isThere || linked.has(target) || (hasRelease && osReleases.includes(path))) return []
      const message = `the file is a link to ${target.slice(0, 200)}, which was not read`
      return [{ path, reason: 'UNSUPPORTED', message }]
    })
  }
}

/** Path that a link points to. The link is not followed. */
function targetOf(path: string, { name, isHard }: Link): string {
  const from = isHard || name.startsWith('/') ? [] : path.split('/').slice(0, -1)
  for (const part of name.split('/')) {
    if (part === '..') from.pop()
    else if (part !== '' && part !== '.') from.push(part)
  }
  return from.join('/')
}
