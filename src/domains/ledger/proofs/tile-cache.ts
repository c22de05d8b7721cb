// Cache of tiles that recent proofs used, with their computed nodes. Reading and hashing tiles takes most of the processor time
// of a proof. Many proofs need the same tiles: those above their entries and at the end of the log.
import type { Db } from '#db/sql.ts'
import { Newest } from '#lib/caches/newest.ts'
import { hashBytes, type Nodes } from '#lib/tlog/merkle.ts'
import { nodesIn, type TileAt, type TileTree, tileKey, tilesFor, tileWidth, treeOf, widthOf } from '#lib/tlog/tiles.ts'
import { readTiles } from './logs.store.ts'

export type TileCache = {
  /** Nodes of the tree of this size that proofs for these entries need. */
  nodesFor(head: { log: number; size: number }, entries: readonly number[]): Promise<Nodes>
}

/** Most tiles in the cache. A tile with its computed nodes takes 16 KB. */
const keptTiles = 256

/** Creates a cache. Tiles of a checkpoint never change, so entries are removed only to make room for newer ones. */
export function createTileCache(db: Db, most = keptTiles): TileCache {
  const kept = new Newest<string, TileTree>(most)
  return {
    async nodesFor({ log, size }, entries) {
      const found = new Map<string, TileTree>()
      const missing: TileAt[] = []
      const keyOf = (at: TileAt) => `${log} ${tileKey(at)} ${widthOf(at, size)}`
      const add = (at: TileAt, tile: TileTree) => {
        found.set(tileKey(at), tile)
        // Tiles of entries are not cached, since few of them are needed twice.
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
        // The stored tile may be longer than needed, since the log may have grown meanwhile.
        const tile = read.get(tileKey(at))?.subarray(0, bytes)
        if (tile?.length === bytes) add(at, treeOf(tile))
      }
      return nodesIn(found)
    },
  }
}
