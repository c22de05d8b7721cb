// The tiles of logs that proofs were made of last, with what was worked out of them. Reading and hashing tiles is most of what a
// proof takes of the processor, and many proofs need the same ones above their entries, and at the end of the log.
import type { Db } from '#db/sql.ts'
import { Newest } from '#lib/caches/newest.ts'
import { hashBytes, type Nodes } from '#lib/tlog/merkle.ts'
import { nodesIn, type TileAt, type TileTree, tileKey, tilesFor, tileWidth, treeOf, widthOf } from '#lib/tlog/tiles.ts'
import { readTiles } from './logs.store.ts'

export type TileCache = {
  /** The nodes of the tree that a head of the log is the root of, as far as proofs about these entries need them. */
  nodesFor(head: { log: number; size: number }, entries: readonly number[]): Promise<Nodes>
}

/** With what is worked out of it a tile takes 16 KB. */
const keptTiles = 256

/** What a head has of a tile is the same for good, so it is never forgotten but for another one. */
export function createTileCache(db: Db, most = keptTiles): TileCache {
  const kept = new Newest<string, TileTree>(most)
  return {
    async nodesFor({ log, size }, entries) {
      const found = new Map<string, TileTree>()
      const missing: TileAt[] = []
      const keyOf = (at: TileAt) => `${log} ${tileKey(at)} ${widthOf(at, size)}`
      const add = (at: TileAt, tile: TileTree) => {
        found.set(tileKey(at), tile)
        // Of entries there are many more than are asked for twice.
        if (at.level > 0 || widthOf(at, size) < tileWidth) kept.set(keyOf(at), tile)
      }
      for (const at of tilesFor(entries, size)) {
        const known = kept.get(keyOf(at))
        if (known) add(at, known)
        else missing.push(at)
      }
      const read = await readTiles(db, log, missing)
      for (const at of missing) {
        const bytes = widthOf(at, size) * hashBytes
        // The log may have more by now.
        const tile = read.get(tileKey(at))?.subarray(0, bytes)
        if (tile?.length === bytes) add(at, treeOf(tile))
      }
      return nodesIn(found)
    },
  }
}
