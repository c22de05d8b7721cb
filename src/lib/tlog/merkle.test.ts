import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tilePathOf } from '../../../test/support/log-tree.ts'
import {
  consistencyProof,
  emptyRoot,
  inclusionProof,
  isConsistent,
  isIncluded,
  leafHash,
  nodeHash,
  rootHash,
} from './merkle.ts'
import { appended, nodesOf, openTiles, readTilePath, tileKey, tilesFor } from './tiles.ts'

const entries = (count: number) => Array.from({ length: count }, (_, i) => Buffer.from(`entry ${i}`))

/** The definition of RFC 6962, word for word. */
function mth(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 0) return emptyRoot
  if (leaves.length === 1) return leafHash(leaves[0]!)
  let split = 1
  while (split * 2 < leaves.length) split *= 2
  return nodeHash(mth(leaves.slice(0, split)), mth(leaves.slice(split)))
}

/** A tree that grew in these steps, as tiles. */
function grown(steps: readonly number[]): { tiles: Map<string, Buffer>; size: number } {
  const tiles = new Map<string, Buffer>()
  let size = 0
  for (const step of steps) {
    const leaves = entries(size + step)
      .slice(size)
      .map(leafHash)
    const open = new Map(openTiles(size).map((at) => [tileKey(at), tiles.get(tileKey(at))!]))
    for (const [key, { hashes }] of appended(size, open, leaves)) tiles.set(key, hashes)
    size += step
  }
  return { tiles, size }
}

test('a tree has the root hash of RFC 6962, however it grew', () => {
  for (const steps of [[0], [1], [2, 1], [255], [256], [1, 255, 1], [257, 300], [100, 100, 100, 400, 1]]) {
    const { tiles, size } = grown(steps)
    assert.deepEqual(rootHash(size, nodesOf(tiles)), mth(entries(size)), steps.join())
  }
  assert.equal(emptyRoot.toString('base64'), '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=')
})

test('finds the nodes of a proof in the listed tiles, and accepts a proof only for its own leaf and root', () => {
  const { tiles } = grown([600])
  for (const size of [1, 2, 3, 7, 8, 255, 256, 257, 511, 512, 600]) {
    const root = rootHash(size, nodesOf(tiles))
    const ofRoot = new Map(tilesFor([], size).map((at) => [tileKey(at), tiles.get(tileKey(at))!]))
    assert.deepEqual(rootHash(size, nodesOf(ofRoot)), root)
    for (const index of [0, 1, 2, 6, 127, 128, 255, 256, 400, 511, size - 1].filter((one) => one < size)) {
      const named = new Map(tilesFor([index], size).map((at) => [tileKey(at), tiles.get(tileKey(at))!]))
      const proof = inclusionProof(index, size, nodesOf(named))
      const leaf = leafHash(Buffer.from(`entry ${index}`))
      assert.ok(isIncluded(leaf, { index, size, root, proof }), `${index} of ${size}`)
      assert.equal(isIncluded(leafHash(Buffer.from('another')), { index, size, root, proof }), false)
      if (size > 1) assert.equal(isIncluded(leaf, { index: (index + 1) % size, size, root, proof }), false)
      for (const i of proof.keys()) {
        assert.equal(isIncluded(leaf, { index, size, root, proof: proof.toSpliced(i, 1) }), false)
        for (const length of [0, 31, 33]) {
          const wrong = proof.with(i, Buffer.concat([proof[i]!, proof[i]!]).subarray(0, length))
          assert.equal(isIncluded(leaf, { index, size, root, proof: wrong }), false)
        }
        const flipped = Buffer.from(proof[i]!)
        flipped[5]! ^= 1
        assert.equal(isIncluded(leaf, { index, size, root, proof: proof.with(i, flipped) }), false)
      }
    }
  }
})

test('a consistency proof verifies between any two sizes, and with no other root', () => {
  const { tiles } = grown([520])
  const nodes = nodesOf(tiles)
  const sizes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 255, 256, 257, 511, 512, 513, 520]
  const headOf = (size: number) => ({ size, root: rootHash(size, nodes) })
  for (const older of sizes) {
    for (const newer of sizes.filter((one) => one >= older)) {
      const named = new Map(
        tilesFor([Math.max(older - 1, 0)], newer).map((at) => [tileKey(at), tiles.get(tileKey(at))!]),
      )
      const proof = consistencyProof(older, newer, nodesOf(named))
      assert.ok(isConsistent(headOf(older), headOf(newer), proof), `${older} to ${newer}`)
      if (older === 0) continue
      const other = Buffer.from(headOf(older).root)
      other[0]! ^= 1
      assert.equal(isConsistent({ size: older, root: other }, headOf(newer), proof), false, `${older} to ${newer}`)
      for (const i of proof.keys()) {
        assert.equal(isConsistent(headOf(older), headOf(newer), proof.toSpliced(i, 1)), false, `${older} to ${newer}`)
        const short = proof.with(i, proof[i]!.subarray(0, 31))
        assert.equal(isConsistent(headOf(older), headOf(newer), short), false, `${older} to ${newer}`)
      }
    }
  }
  assert.equal(isConsistent(headOf(5), headOf(3), []), false)
})

test('each tile has one name', () => {
  const names = [
    'tile/0/000',
    'tile/0/x001/234',
    'tile/1/x001/x234/067',
    'tile/63/255.p/1',
    'tile/entries/x001/000.p/255',
  ]
  for (const name of names) {
    const asked = readTilePath(name.slice('tile/'.length))
    assert.ok(asked, name)
    assert.equal(tilePathOf(asked), name)
  }
  assert.equal(readTilePath('1/x001/x234/067')?.index, 1_234_067)
  const wrong = [
    '0/0',
    '0/00',
    '0/0000',
    '00/000',
    '64/000',
    '0/x000/001',
    '0/000.p/0',
    '0/000.p/256',
    '0/000.p/01',
    '0/1000',
  ]
  for (const name of [...wrong, '-1/000', '0/000.p/', '0/x001', 'entries/000/', '', 'data/000']) {
    assert.equal(readTilePath(name), undefined, name)
  }
})
