// Transparency log as a reader computes it from the entries.
import type { Nodes } from '#lib/tlog/merkle.ts'
import { appended, nodesOf, type TileRequest, tileWidth } from '#lib/tlog/tiles.ts'

/** Entries of a bundle. Two bytes before each entry contain its length. */
export function entriesIn(bundle: Buffer): Buffer[] {
  const entries: Buffer[] = []
  for (let at = 0; at < bundle.length; ) {
    const length = bundle.readUInt16BE(at)
    entries.push(bundle.subarray(at + 2, at + 2 + length))
    at += 2 + length
  }
  return entries
}

/** Nodes of the tree for these leaves. */
export function nodesOver(leaves: readonly Buffer[]): Nodes {
  return nodesOf(new Map([...appended(0, new Map(), leaves)].map(([name, { hashes }]) => [name, hashes])))
}

/** Path of a tile, relative to the log (c2sp.org/tlog-tiles). */
export function tilePathOf({ kind, level, index, width }: TileRequest): string {
  const digits = String(index)
  const padded = digits.padStart(Math.ceil(digits.length / 3) * 3, '0')
  const elements = padded.match(/\d{3}/g)!.map((one, i, all) => (i < all.length - 1 ? `x${one}` : one))
  const name = `tile/${kind === 'entries' ? 'entries' : level}/${elements.join('/')}`
  return width === tileWidth ? name : `${name}.p/${width}`
}
