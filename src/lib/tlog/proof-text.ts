// Text of an inclusion proof of a log entry (c2sp.org/tlog-proof). Our files have one proof, or two in a row.
import { readSize } from './checkpoint.ts'
import { hashBytes } from './merkle.ts'
import { fromBase64 } from './notes.ts'

/** Inclusion proof. `extra` is not signed. `checkpoint` is the signed note. */
export type LogProof = { extra: Buffer; index: number; hashes: Buffer[]; checkpoint: string }

const header = 'c2sp.org/tlog-proof@v1'
const mostHashes = 63
const mostChars = 1 << 20

export function proofText({ extra, index, hashes, checkpoint }: LogProof): string {
  const lines = [header, `extra ${extra.toString('base64')}`, `index ${index}`]
  return `${[...lines, ...hashes.map((hash) => hash.toString('base64'))].join('\n')}\n\n${checkpoint}`
}

/** Parses a file with at least one proof. `undefined` if any part of the file is not a proof. */
export function parseProofs(text: string): LogProof[] | undefined {
  if (text.length > mostChars || !text.startsWith(`${header}\n`)) return undefined
  const parts = text.split(new RegExp(`^${header.replaceAll('.', '\\.')}\n`, 'm')).slice(1)
  const proofs = parts.map(parseProof)
  return proofs.every((one) => one !== undefined) ? proofs : undefined
}

function parseProof(text: string): LogProof | undefined {
  const end = text.indexOf('\n\n')
  if (end < 0) return undefined
  const lines = text.slice(0, end).split('\n')
  const extra = lines[0]?.startsWith('extra ') ? fromBase64(lines.shift()!.slice('extra '.length)) : Buffer.alloc(0)
  const counted = lines.shift() ?? ''
  const index = counted.startsWith('index ') ? readSize(counted.slice('index '.length)) : undefined
  const hashes = lines.map(fromBase64)
  if (!extra || index === undefined || hashes.length > mostHashes) return undefined
  if (!hashes.every((hash) => hash?.length === hashBytes)) return undefined
  return { extra, index, hashes: hashes as Buffer[], checkpoint: text.slice(end + 2) }
}
