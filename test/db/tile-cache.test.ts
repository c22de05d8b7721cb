// Cache of the tiles of a log. With the cache, a proof reads little more than the tiles of its own entries.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { writeTiles } from '#domains/ledger/proofs/logs.store.ts'
import { createTileCache, type TileCache } from '#domains/ledger/proofs/tile-cache.ts'
import { inclusionProof, isIncluded, leafHash, rootHash } from '#lib/tlog/merkle.ts'
import { appended, nodesOf, type TileAt, tileKey } from '#lib/tlog/tiles.ts'
import { startPinfold } from '../support/pinfold.ts'

const size = 600
const leavesOf = (log: number) => Array.from({ length: size }, (_, i) => leafHash(Buffer.from(`${log} ${i}`)))

test('proofs of a checkpoint read the tile of their entry, and shared tiles once', async () => {
  await using pinfold = await startPinfold()
  const { db } = pinfold.app
  const logs = new Map([7, 8].map((log) => [log, leavesOf(log)]))
  const tiles = new Map([...logs].map(([log, leaves]) => [log, appended(0, new Map(), leaves)]))
  for (const [log, some] of tiles) await db.tx((tx) => writeTiles(tx, log, [...some.values()]))
  const names: string[] = []
  const watched: typeof db = {
    ...db,
    async all<T>(query: Parameters<typeof db.all>[0]) {
      const rows = await db.all<T>(query)
      names.push(...(rows as TileAt[]).map(tileKey))
      return rows
    },
  }
  /** The tiles that were read for a proof. */
  const proved = async (cache: TileCache, index: number, { log = 7, of = size } = {}) => {
    names.length = 0
    const proof = inclusionProof(index, of, await cache.nodesFor({ log, size: of }, [index]))
    const all = nodesOf(new Map([...tiles.get(log)!].map(([key, { hashes }]) => [key, hashes])))
    const leaf = logs.get(log)![index]!
    assert.ok(isIncluded(leaf, { index, size: of, root: rootHash(of, all), proof }), `${index} of ${of} in ${log}`)
    return names.sort().join()
  }

  const cache = createTileCache(watched)
  assert.equal(await proved(cache, 3), '0/0,0/2,1/0')
  assert.equal(await proved(cache, 300), '0/1')
  assert.equal(await proved(cache, 599), '')
  // For another checkpoint, only the tiles with different hashes are read.
  assert.equal(await proved(cache, 300, { of: 580 }), '0/1,0/2')
  assert.equal(await proved(cache, 300, { of: 500 }), '0/1,1/0')
  assert.equal(await proved(cache, 3), '0/0')
  assert.equal(await proved(cache, 3, { log: 8 }), '0/0,0/2,1/0')

  const small = createTileCache(watched, 1)
  assert.equal(await proved(small, 3), '0/0,0/2,1/0')
  assert.equal(await proved(small, 3), '0/0,0/2')
})
