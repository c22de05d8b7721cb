import { isFolderOfWatched, isWatched } from './files.ts'
import { Unreadable } from './packages.ts'

/** Watched files by their paths. */
export type Files = Map<string, Uint8Array>

type KeepLimits = { fileBytes: number; keptBytes: number; keptFiles: number }

const whiteout = '.wh.'
const opaque = '.wh..wh..opq'

/** What one layer does to the watched files below it, by the rules of the OCI image specification, layer.md. */
export class LayerChange {
  readonly files: Files
  /** Whiteouts hide what is below the layer, never what the layer itself brings. */
  readonly #brought = new Set<string>()
  readonly #limits: KeepLimits
  #bytes = 0

  constructor(below: Files, limits: KeepLimits) {
    this.files = new Map(below)
    for (const kept of below.values()) this.#bytes += kept.length
    this.#limits = limits
  }

  /** Notes an entry of the layer. True when its content has to be handed to `keep`. */
  wants(name: string, type: string, size: number): boolean {
    const path = pathOf(name)
    if (path === undefined) return false
    const slash = path.lastIndexOf('/')
    const [folder, last] = [path.slice(0, Math.max(slash, 0)), path.slice(slash + 1)]
    if (last === opaque) this.#removeBelow(folder, true)
    else if (last.startsWith(whiteout)) this.#hide(pathOf(`${folder}/${last.slice(whiteout.length)}`))
    if (last.startsWith(whiteout)) return false
    if (isFolderOfWatched(path)) {
      if (type !== 'directory') this.#removeBelow(path)
      return false
    }
    if (!isWatched(path)) return false
    // Whatever stands there now, the file that stood there does not.
    this.#remove(path)
    if (type !== 'file' && type !== 'contiguous-file') return false
    const { fileBytes } = this.#limits
    if (size > fileBytes) throw new Unreadable('LIMIT_EXCEEDED', `more than ${fileBytes} bytes in one file of packages`)
    return true
  }

  keep(name: string, bytes: Uint8Array): void {
    const path = pathOf(name)!
    this.#remove(path)
    this.files.set(path, bytes)
    this.#brought.add(path)
    this.#bytes += bytes.length
    const { keptFiles, keptBytes } = this.#limits
    if (this.files.size > keptFiles) throw new Unreadable('LIMIT_EXCEEDED', `more than ${keptFiles} files of packages`)
    if (this.#bytes > keptBytes)
      throw new Unreadable('LIMIT_EXCEEDED', `more than ${keptBytes} bytes in files of packages`)
  }

  #hide(path: string | undefined): void {
    if (path === undefined || path === '') return
    if (!this.#brought.has(path)) this.#remove(path)
    if (isFolderOfWatched(path)) this.#removeBelow(path, true)
  }

  #removeBelow(folder: string, sparing = false): void {
    const prefix = folder === '' ? '' : `${folder}/`
    for (const path of this.files.keys()) {
      if (path.startsWith(prefix) && !(sparing && this.#brought.has(path))) this.#remove(path)
    }
  }

  #remove(path: string): void {
    this.#bytes -= this.files.get(path)?.length ?? 0
    this.files.delete(path)
    this.#brought.delete(path)
  }
}

/** Without leading or doubled slashes and dots; undefined for a name that leads out of the image. */
function pathOf(name: string): string | undefined {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.')
  return parts.includes('..') ? undefined : parts.join('/')
}
