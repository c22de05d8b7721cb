// The logs of ledgers as a reader works them out from their entries.
import type { Nodes } from '#lib/tlog/merkle.ts'
import { appended, nodesOf } from '#lib/tlog/tiles.ts'

/** The entries of a bundle, each behind its length in two bytes. */
export function entriesIn(bundle: Buffer): Buffer[] {
  const entries: Buffer[] = []
  for (let at = 0; at < bundle.length; ) {
    const length = bundle.readUInt16BE(at)
    entries.push(bundle.subarray(at + 2, at + 2 + length))
    at += 2 + length
  }
  return entries
}

/** The nodes of a log of these leaves. */
export function nodesOver(leaves: readonly Buffer[]): Nodes {
  return nodesOf(new Map([...appended(0, new Map(), leaves)].map(([name, { hashes }]) => [name, hashes])))
}
