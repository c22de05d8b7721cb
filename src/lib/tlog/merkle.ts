// Merkle trees of RFC 6962. Sizes and indexes are whole numbers below 2^53, so bit operations, which have 32 bits, are not used.
import { hash } from 'node:crypto'

export const hashBytes = 32

/** Returns the hash of a complete subtree with 2^level leaves. `index` is its position among the subtrees of this level. */
export type Nodes = (level: number, index: number) => Buffer

const sha256 = (bytes: Uint8Array): Buffer => hash('sha256', bytes, 'buffer')
const leafPrefix = Buffer.of(0)

export const emptyRoot: Buffer = sha256(Buffer.alloc(0))

export function leafHash(entry: Uint8Array): Buffer {
  return sha256(Buffer.concat([leafPrefix, entry]))
}

/**
 * Buffer for the input of a node hash: a prefix and the two children. All calls share it, since no other code can run meanwhile.
 */
const pair = Buffer.alloc(1 + 2 * hashBytes)
pair[0] = 1

export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  pair.set(left, 1)
  pair.set(right, 1 + hashBytes)
  // `Buffer.from` takes memory from a pool. With the output `buffer`, each hash would be a separate allocation. A proof needs
  // hundreds of hashes, so that would be slower.
  return Buffer.from(hash('sha256', pair, 'binary'), 'latin1')
}

/** Largest power of two below `count`, which must be at least 2. */
function splitOf(count: number): number {
  let split = 1
  while (split * 2 < count) split *= 2
  return split
}

/** Root of the leaves from `start` to `end`. The range must be a node of the tree. */
function rangeRoot(start: number, end: number, nodes: Nodes): Buffer {
  const count = end - start
  const level = Math.log2(count)
  if (Number.isInteger(level)) return nodes(level, start / count)
  const middle = start + splitOf(count)
  return nodeHash(rangeRoot(start, middle, nodes), rangeRoot(middle, end, nodes))
}

/** The root of a tree with `size` leaves. */
export function rootHash(size: number, nodes: Nodes): Buffer {
  return size === 0 ? emptyRoot : rangeRoot(0, size, nodes)
}

/** Inclusion proof: the sibling hashes from the leaf to the root (RFC 6962, 2.1.1). */
export function inclusionProof(index: number, size: number, nodes: Nodes): Buffer[] {
  const path: Buffer[] = []
  let [start, end] = [0, size]
  while (end - start > 1) {
    const middle = start + splitOf(end - start)
    if (index < middle) {
      path.push(rangeRoot(middle, end, nodes))
      end = middle
    } else {
      path.push(rangeRoot(start, middle, nodes))
      start = middle
    }
  }
  return path.reverse()
}

/**
 * Consistency proof: hashes that prove that the tree with `older` leaves is the beginning of the tree with `size` leaves (RFC
 * 6962, 2.1.2). Empty if `older` is 0 or `size`.
 */
export function consistencyProof(older: number, size: number, nodes: Nodes): Buffer[] {
  if (older === 0 || older === size) return []
  const path: Buffer[] = []
  let [start, end] = [0, size]
  while (end !== older) {
    const middle = start + splitOf(end - start)
    if (older <= middle) {
      path.push(rangeRoot(middle, end, nodes))
      end = middle
    } else {
      path.push(rangeRoot(start, middle, nodes))
      start = middle
    }
  }
  // If the range is the whole older tree, the proof does not need its hash, since a verifier knows the root of that tree.
  if (start !== 0) path.push(rangeRoot(start, end, nodes))
  return path.reverse()
}

const half = (number: number): number => Math.floor(number / 2)
const isHash = ({ length }: Uint8Array): boolean => length === hashBytes
const isOdd = (number: number): boolean => number % 2 === 1

/** Verifies an inclusion proof (RFC 9162, 2.1.3.2). */
export function isIncluded(
  leaf: Uint8Array,
  { index, size, root, proof }: { index: number; size: number; root: Uint8Array; proof: readonly Uint8Array[] },
): boolean {
  if (index >= size || ![leaf, ...proof].every(isHash)) return false
  let seen: Buffer = Buffer.from(leaf)
  let [at, last] = [index, size - 1]
  for (const hash of proof) {
    if (last === 0) return false
    if (isOdd(at) || at === last) {
      seen = nodeHash(hash, seen)
      while (!isOdd(at) && at !== 0) [at, last] = [half(at), half(last)]
    } else seen = nodeHash(seen, hash)
    ;[at, last] = [half(at), half(last)]
  }
  return last === 0 && seen.equals(root)
}

type TreeHead = { size: number; root: Uint8Array }

/**
 * Verifies a consistency proof: the older tree is the beginning of the newer one (RFC 9162, 2.1.4.2). An empty tree is the
 * beginning of every tree.
 */
export function isConsistent(older: TreeHead, newer: TreeHead, proof: readonly Uint8Array[]): boolean {
  if (older.size > newer.size || ![older.root, newer.root, ...proof].every(isHash)) return false
  if (older.size === 0) return proof.length === 0
  if (older.size === newer.size) return proof.length === 0 && Buffer.from(older.root).equals(newer.root)
  const path = Number.isInteger(Math.log2(older.size)) ? [older.root, ...proof] : [...proof]
  const [first, ...rest] = path
  if (!first) return false
  let [at, last] = [older.size - 1, newer.size - 1]
  while (isOdd(at)) [at, last] = [half(at), half(last)]
  let before: Buffer = Buffer.from(first)
  let after: Buffer = before
  for (const hash of rest) {
    if (last === 0) return false
    if (isOdd(at) || at === last) {
      before = nodeHash(hash, before)
      after = nodeHash(hash, after)
      while (!isOdd(at) && at !== 0) [at, last] = [half(at), half(last)]
    } else after = nodeHash(after, hash)
    ;[at, last] = [half(at), half(last)]
  }
  return last === 0 && before.equals(older.root) && after.equals(newer.root)
}
