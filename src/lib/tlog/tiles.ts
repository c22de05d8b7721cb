// Merkle trees in tiles of 256 hashes (c2sp.org/tlog-tiles). A tile is a subtree of height 8, and stores its leaves.
import { hashBytes, type Nodes, nodeHash } from './merkle.ts'

export const tileWidth = 256
const tileHeight = 8

/** Position of a tile in the tree. Level 0 has the hashes of the entries. */
export type TileAt = { level: number; index: number }

/** Hashes of tiles, by `tileKey`. A tile at the end of the tree may be partial. */
export type Tiles = ReadonlyMap<string, Buffer>

export function tileKey({ level, index }: TileAt): string {
  return `${level}/${index}`
}

/** Number of hashes at this tile level in a tree with `size` entries. */
function countAt(level: number, size: number): number {
  return Math.floor(size / tileWidth ** level)
}

/**
 * Tiles that are needed to prove these leaves and the root of a tree of this size. To prove another size, pass the index of its
 * last leaf.
 */
export function tilesFor(leaves: readonly number[], size: number): TileAt[] {
  const found = new Map<string, TileAt>()
  const add = (level: number, index: number) => found.set(tileKey({ level, index }), { level, index })
  for (let level = 0; countAt(level, size) > 0; level++) {
    const count = countAt(level, size)
    for (const at of [...leaves, size]) {
      const index = Math.floor(countAt(level, at) / tileWidth)
      if (index * tileWidth < count) add(level, index)
    }
  }
  return [...found.values()]
}

/** Number of hashes of a tile in a tree of this size. */
export function widthOf({ level, index }: TileAt, size: number): number {
  return Math.min(tileWidth, countAt(level, size) - index * tileWidth)
}

/** Nodes inside a tile. Height 0 has the hashes of the tile. `undefined` for a node that the tile does not have. */
export type TileTree = (height: number, index: number) => Buffer | undefined

/** Nodes inside this tile. The hashes of each height are computed on first use. */
export function treeOf(tile: Buffer): TileTree {
  const heights = [tile]
  return (height, index) => {
    while (heights.length <= height) heights.push(parentsOf(heights.at(-1)!))
    const from = index * hashBytes
    const node = heights[height]!.subarray(from, from + hashBytes)
    return node.length === hashBytes ? node : undefined
  }
}

/** Nodes of the tree, read from the given tiles. Throws if a tile is missing. */
export function nodesIn(tiles: ReadonlyMap<string, TileTree>): Nodes {
  return (height, index) => {
    const [level, above] = [Math.floor(height / tileHeight), height % tileHeight]
    const width = tileWidth / 2 ** above
    const at = { level, index: Math.floor(index / width) }
    const node = tiles.get(tileKey(at))?.(above, index % width)
    if (!node) throw new Error(`tile ${tileKey(at)} is not available`)
    return node
  }
}

/** Nodes of the tree, read from stored tiles. */
export function nodesOf(tiles: Tiles): Nodes {
  return nodesIn(new Map([...tiles].map(([key, tile]) => [key, treeOf(tile)])))
}

/** Hashes of the parent nodes. A last node without a sibling has no parent yet. */
function parentsOf(hashes: Buffer): Buffer {
  const parents = Buffer.alloc(Math.floor(hashes.length / (2 * hashBytes)) * hashBytes)
  for (let at = 0; at < parents.length; at += hashBytes) {
    const [left, right] = [2 * at, 2 * at + hashBytes]
    nodeHash(hashes.subarray(left, right), hashes.subarray(right, right + hashBytes)).copy(parents, at)
  }
  return parents
}

/** Tiles that are partial in a tree of this size. The next leaves are added to them. */
export function openTiles(size: number): TileAt[] {
  const open: TileAt[] = []
  for (let level = 0; countAt(level, size) > 0; level++) {
    const count = countAt(level, size)
    if (count % tileWidth > 0) open.push({ level, index: Math.floor(count / tileWidth) })
  }
  return open
}

/** Tiles that change when leaves are added to a tree of this size. `open` has its partial tiles. */
export function appended(
  size: number,
  open: Tiles,
  leaves: readonly Buffer[],
): Map<string, TileAt & { hashes: Buffer }> {
  const changed = new Map<string, TileAt & { hashes: Buffer }>()
  let adding = leaves
  for (let level = 0; adding.length > 0; level++) {
    const full: Buffer[] = []
    let count = countAt(level, size)
    for (let done = 0; done < adding.length; ) {
      const at = { level, index: Math.floor(count / tileWidth) }
      const here = count % tileWidth
      const some = adding.slice(done, done + tileWidth - here)
      const before = here === 0 ? Buffer.alloc(0) : open.get(tileKey(at))
      if (before?.length !== here * hashBytes) throw new Error(`tile ${tileKey(at)} is not available`)
      const hashes = Buffer.concat([before, ...some])
      changed.set(tileKey(at), { ...at, hashes })
      if (here + some.length === tileWidth) full.push(treeOf(hashes)(tileHeight, 0)!)
      done += some.length
      count += some.length
    }
    adding = full
  }
  return changed
}

/** Tile or bundle of entries that was requested by its path, with the number of hashes or entries to return. */
export type TileRequest = { kind: 'hashes' | 'entries'; level: number; index: number; width: number }

const tilePath = /^(?:(\d|[1-5]\d|6[0-3])|entries)\/((?:x\d{3}\/)*)(\d{3})(?:\.p\/([1-9]\d{0,2}))?$/
/** Maximum number of path elements, so that every index is below 10^15. */
const mostElements = 5

/** Parses the path after `tile/`. Returns `undefined` if the path is not that of a tile. */
export function readTilePath(path: string): TileRequest | undefined {
  const [, level, above, last, width] = tilePath.exec(path) ?? []
  if (above === undefined || last === undefined) return undefined
  const elements = [...above.split('/').filter((one) => one !== ''), last]
  // A leading element of zeros is refused, so that each tile has only one path.
  if (elements.length > mostElements || (elements.length > 1 && elements[0] === 'x000')) return undefined
  const wide = width === undefined ? tileWidth : Number(width)
  if (width !== undefined && wide >= tileWidth) return undefined
  const index = Number(elements.map((one) => one.replace('x', '')).join(''))
  return { kind: level === undefined ? 'entries' : 'hashes', level: Number(level ?? 0), index, width: wide }
}

/** Content of a bundle: each entry, preceded by its length. */
export function bundleOf(entries: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    entries.flatMap((entry) => {
      const length = Buffer.alloc(2)
      length.writeUInt16BE(entry.length)
      return [length, entry]
    }),
  )
}
