// Fork of a log: another history than the one that the witnesses have seen. It is complete, with the same origin and sizes, and
// is signed with the log's own key.
import { checkpointText } from '#lib/tlog/checkpoint.ts'
import { inclusionProof, leafHash, rootHash } from '#lib/tlog/merkle.ts'
import { type NoteKey, signLine } from '#lib/tlog/notes.ts'
import { commitmentOf, entryText, type Opening, openingText, parseEntry, parseOpening } from '#lib/tlog/tag-entry.ts'
import { tagProofText } from '#lib/tlog/tag-proof.ts'
import { nodesOver } from '../support/log-tree.ts'

/** Knowledge of the holder of the log's key: all entries, and the entries of a tag with their rows, in order. */
export type Known = {
  key: NoteKey
  privateKey: Uint8Array
  entries: readonly string[]
  chain: readonly { index: number; opening: string }[]
  salt: string
}

/** First entry of the tag that the fork changes, and the size of the log after it. */
export type Fork = { seq: number; size: number; row: Partial<Pick<Opening, 'digest' | 'time'>> }

const leafOf = (entry: string): Buffer => leafHash(Buffer.from(entry))

/**
 * Proof of the entry `of` of the tag in the fork. If the log is large enough, it also contains the next entry. `cosign` returns
 * the lines after the signature of the log.
 */
export function forkedProof(known: Known, fork: Fork, of: number, cosign: (head: string) => string): string {
  const entries = known.entries.slice(0, fork.size)
  const chain = known.chain.filter(({ index }) => index < fork.size)
  const openings = chain.map(({ opening }, seq) => {
    return seq === fork.seq ? openingText({ ...parseOpening(opening)!, ...fork.row }) : opening
  })
  for (let seq = fork.seq; seq < chain.length; seq++) {
    const { index } = chain[seq]!
    const was = parseEntry(entries[index]!)!
    const before = chain[seq - 1]
    entries[index] = entryText({
      ...was,
      prev: before ? leafOf(entries[before.index]!).toString('hex') : '',
      time: parseOpening(openings[seq]!)!.time,
      commitment: commitmentOf(openings[seq]!),
    })
  }
  const { head, prove } = treeOf(known.key.name, entries)
  const checkpoint = `${head}\n${signLine(head, known.key, known.privateKey)}${cosign(head)}`
  const [first, next] = [chain[of]!, chain[of + 1]]
  const shown = (index: number, more: object = {}) => ({
    index,
    hashes: prove(index),
    checkpoint,
    beside: { entry: entries[index]!, ...more },
  })
  return tagProofText([
    shown(first.index, { opening: openings[of], salt: known.salt }),
    ...(next ? [shown(next.index)] : []),
  ])
}

function treeOf(origin: string, entries: readonly string[]) {
  const size = entries.length
  const nodes = nodesOver(entries.map(leafOf))
  return {
    head: checkpointText({ origin, size, root: rootHash(size, nodes) }),
    prove: (index: number) => inclusionProof(index, size, nodes),
  }
}
