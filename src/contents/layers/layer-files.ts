import { type Found, type ImageFile, Unreadable } from '../packages.ts'
import { ImageTree } from './image-tree.ts'
import { UnreadPaths } from './unread-paths.ts'
import { type Watch, watchOf } from './watched.ts'

type KeepLimits = {
  fileBytes: number
  totalBytes: number
  maxFiles: number
  ownedBytes: number
  languageFiles: number
  pathParts: number
}

const whiteout = '.wh.'
/** Limit on the characters in the path of a package file. */
const maxPath = 512
const opaque = '.wh..wh..opq'
/** Path for the gap that states that limits were exceeded. No file can have this path. */
const overflow = ['/']

/** File that lists packages, or may list them. */
export type Wanted = { path: string; parts: string[]; watch: Watch }

/** Files that list packages, in their state after some layers of the image (OCI image specification, layer.md). */
export class LayerFiles {
  readonly #databases = new ImageTree<Uint8Array>()
  /** Lists of owned files are stored separately, because there may be many, and packages can be read without them. */
  readonly #owned = new ImageTree<Uint8Array>()
  /** SQLite databases of rpm and their logs. */
  readonly #sqlite = new ImageTree<Buffer>()
  readonly #found = new ImageTree<Found>()
  readonly #unread: UnreadPaths
  readonly #limits: KeepLimits

  constructor(limits: KeepLimits) {
    this.#limits = limits
    this.#unread = new UnreadPaths(limits.languageFiles)
  }

  nextLayer(): void {
    for (const tree of this.#trees()) tree.nextLayer()
  }

  /**
   * Records an entry of the layer. If the result is not undefined, the caller must pass the content of the entry to `keep` or
   * `keepFound`.
   */
  wants(name: string, type: string, size: number, linkName = ''): Wanted | undefined {
    const parts = partsOf(name)
    if (!parts) return undefined
    const last = parts.at(-1) ?? ''
    if (last.startsWith(whiteout)) {
      const folder = parts.slice(0, -1)
      const hidden = last === opaque ? folder : hiddenBy(folder, last.slice(whiteout.length))
      if (hidden) for (const tree of this.#trees()) tree.hide(hidden)
      return undefined
    }
    if (parts.length === 0) return undefined
    // Any new entry at a path replaces the file that was there.
    if (type === 'directory') for (const tree of this.#trees()) tree.removeFile(parts)
    else for (const tree of this.#trees()) tree.remove(parts)
    const path = parts.join('/')
    this.#unread.note(path, type, linkName)
    if (type !== 'file' && type !== 'contiguous-file') return undefined
    const watch = watchOf(path)
    const { fileBytes } = this.#limits
    if (watch === 'owned' && size > fileBytes) return undefined
    if (watch === 'database' && size > fileBytes) {
      throw new Unreadable('LIMIT_EXCEEDED', `a file with package data has more than ${fileBytes} bytes`)
    }
    return { path, parts, watch }
  }

  keep({ parts, watch }: Wanted, bytes: Uint8Array): void {
    const { maxFiles, totalBytes, ownedBytes } = this.#limits
    if (watch === 'owned') {
      // If this list is left out, its files have no owner, so no finding is suppressed.
      if (this.#owned.size + bytes.length <= ownedBytes && this.#owned.leaves < maxFiles) {
        this.#owned.set(parts, bytes, bytes.length)
      }
      return
    }
    this.#databases.set(parts, bytes, bytes.length)
    if (this.#databases.leaves > maxFiles) {
      throw new Unreadable('LIMIT_EXCEEDED', `the image has more than ${maxFiles} files with package data`)
    }
    if (this.#databases.size > totalBytes) {
      throw new Unreadable('LIMIT_EXCEEDED', `the files with package data have more than ${totalBytes} bytes`)
    }
  }

  /** Bytes of the SQLite files that are stored at present. */
  get sqliteBytes(): number {
    return this.#sqlite.size
  }

  keepSqlite({ parts }: Wanted, bytes: Buffer): void {
    this.#sqlite.set(parts, bytes, bytes.length)
  }

  /** SQLite files of the image by path, in their state after the last layer. */
  sqliteFiles(): ReadonlyMap<string, Buffer> {
    return new Map(this.#sqlite.visible())
  }

  keepFound({ path, parts }: Pick<Wanted, 'path' | 'parts'>, found: Found): void {
    const { languageFiles, pathParts, totalBytes } = this.#limits
    const size = (found.packages.length + found.gaps.length) * 500 + (found.owned?.length ?? 0) * 100
    const isDeep = parts.length > pathParts || path.length > maxPath
    const full = isDeep || this.#found.leaves >= languageFiles || this.#found.size + size > totalBytes
    if (!full) {
      this.#found.set(parts, found, size)
      return
    }
    const message = 'the image has more package files than the limit, or some in folders that are nested too deeply'
    const gap = { path: Buffer.from(path.slice(0, maxPath)).toString(), reason: 'LIMIT_EXCEEDED' as const, message }
    this.#found.set(overflow, { packages: [], gaps: [gap] }, 500)
  }

  all(): ImageFile[] {
    const plain = [...this.#databases.visible(), ...this.#owned.visible()]
    const found = [...this.#found.visible()]
    const gaps = this.#unread.gaps([...plain, ...found].map(([path]) => path))
    const withGaps = gaps.map((gap): [string, Found] => [gap.path, { packages: [], gaps: [gap] }])
    return [
      ...plain.map(([path, bytes]): ImageFile => ({ path, bytes })),
      ...[...found, ...withGaps].map(([path, found]): ImageFile => ({ path, bytes: new Uint8Array(), found })),
    ]
  }

  #trees(): ImageTree<unknown>[] {
    const own = [this.#databases, this.#owned, this.#sqlite, this.#found]
    return [...own.map((tree) => tree as ImageTree<unknown>), ...this.#unread.trees]
  }
}

/** Path that the whiteout with this name hides. A whiteout hides only files of its own folder. */
function hiddenBy(folder: readonly string[], name: string): string[] | undefined {
  if (name === '' || name === '.') return folder.length === 0 ? undefined : [...folder]
  return name === '..' ? undefined : [...folder, name]
}

/** Parts of a path, without empty parts and dots. Undefined if the path leads out of the image. */
function partsOf(name: string): string[] | undefined {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.')
  return parts.includes('..') ? undefined : parts
}
